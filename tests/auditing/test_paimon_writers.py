"""Honest tables of Paimon by several writers, with rows that expire, and with dynamic buckets: no false alarm."""

from pathlib import Path
from random import Random

import pytest
from tests.auditing.paimon_audits import audited, require_proven
from tests.auditing.test_paimon import unproven
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.drivers.pypaimon_oracle import PyPaimon
from tests.engines.paimon.test_dynamic_buckets import COLUMNS, KINDS, OPTIONS, write
from tests.engines.paimon.test_record_expiry import aged
from tests.formats.paimon.upgrade import upgrade
from tests.support.extended import some_extended

from nightkeep.model import Operation, Outcome

pytestmark = [pytest.mark.slow]


@pytest.mark.parametrize("seed", some_extended(range(6), keep=1))
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_what_pypaimon_writes(
    vectors: str, seed: int, paimon_java: PaimonJava, pypaimon: PyPaimon, tmp_path: Path
) -> None:
    """Beside Java, with deletes that it does not count. Compactions are Java's and ours."""
    chance, table = Random(seed), tmp_path / "t"
    options = {"bucket": "2", "write-only": "true", "rowkind.field": "kind", "deletion-vectors.enabled": vectors}
    columns = [("day", "STRING NOT NULL"), ("id", "INT NOT NULL"), ("kind", "STRING"), ("note", "STRING")]
    paimon_java.create(table, Layout(columns, ["day", "id"], ["day"], options))
    proven = 0
    for step in range(8):
        keys = chance.sample(range(60), 12)
        kinds = [chance.choice(("+I", "+I", "+U", "-D")) if step else "+I" for _ in keys]
        rows = [(kind, chance.choice(("a", "b")), key, kind, f"{step}") for kind, key in zip(kinds, keys, strict=True)]
        pypaimon.write(table, rows) if chance.random() < 0.6 else paimon_java.write(table, rows, Writer(user="writer"))
        if chance.random() < 0.5:
            document = upgrade(table, operation=Operation.UPGRADE if vectors == "true" else Operation.OPTIMIZE)
            assert document.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), document.reason
        elif chance.random() < 0.6:
            paimon_java.compact(table, Compaction(full=chance.random() < 0.4, user="compactor"))
        if chance.random() < 0.3:
            proven += require_proven(audited(table))
    paimon_java.compact(table, Compaction(full=True, user="compactor"))
    proven += require_proven(audited(table))
    assert require_proven(audited(table, mark="whole")) == proven > 0


def test_what_pypaimon_appends(paimon_java: PaimonJava, pypaimon: PyPaimon, tmp_path: Path) -> None:
    table = tmp_path / "t"
    options = {"bucket": "-1", "compaction.min.file-num": "2"}
    paimon_java.create(table, Layout([("id", "INT"), ("day", "STRING"), ("note", "STRING")], [], ["day"], options))
    for step in range(4):
        pypaimon.write(table, [("+I", step * 10 + n, "ab"[n % 2], None if n % 3 else "x") for n in range(9)])
    assert upgrade(table, operation=Operation.OPTIMIZE).outcome is Outcome.VERIFIED
    assert require_proven(audited(table)) == 1


@pytest.mark.parametrize("operation", KINDS)
def test_dynamic_buckets(operation: Operation, paimon_java: PaimonJava, tmp_path: Path) -> None:
    table, options = tmp_path / "t", {**OPTIONS, **KINDS[operation]}
    paimon_java.create(table, Layout(COLUMNS, ["day", "k"], ["day"], options))
    proven = 0
    for step in range(4):
        write(paimon_java, table, range(60 * step, 60 * step + 130), f"step {step}")
        write(paimon_java, table, range(30 * step, 30 * step + 9), "", "-D")
        if step % 2:
            paimon_java.compact(table, Compaction(full=step == 1, user="compactor"))
        else:
            assert upgrade(table, operation=operation, full=True).outcome is Outcome.VERIFIED
        proven += require_proven(audited(table))
    assert require_proven(audited(table, mark="whole")) == proven == 4


@pytest.mark.parametrize("seed", some_extended(range(24), keep=2))
def test_rows_that_expire(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    """A compaction may leave them out."""
    made = aged(paimon_java, seed, tmp_path)
    proven = 0
    for _ in range(5):
        made.write(deletes="merge-engine" not in made.options)
        if made.chance.random() < 0.5:
            paimon_java.compact(made.table, Compaction(full=made.chance.random() < 0.5, user="compactor"))
        else:
            assert made.care(full=made.chance.random() < 0.4).outcome in (Outcome.VERIFIED, Outcome.UNCHANGED)
        if made.chance.random() < 0.4:
            proven += require_proven(audited(made.table))
    made.write(deletes=False)
    paimon_java.compact(made.table, Compaction(full=True, user="compactor"))
    proven += require_proven(audited(made.table))
    assert require_proven(audited(made.table, mark="whole")) == proven > 0


def test_a_row_that_has_not_expired_must_stay(paimon_java: PaimonJava, tmp_path: Path) -> None:
    made = aged(paimon_java, 0, tmp_path)
    for _ in range(3):
        made.write(deletes=False)
    with unproven(made.table, lambda staged: staged.rewrite(lambda rows: rows.slice(rows.num_rows // 2))):
        made.care(full=True)
    found = audited(made.table)
    assert found.outcome is Outcome.MISMATCH, found.document.reason
    (wrong,) = found.wrong.values()
    assert wrong["verdict"] == "differs" and wrong["missing"] > 0 and wrong["extra"] == 0
