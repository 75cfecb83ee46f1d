"""Rules and refusals of tables with keys say nothing of tables without, and the reverse."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.appended import Appended
from tests.formats.paimon.contents import SAMPLES, opened

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.rewrite.table_kinds import in_keyed, in_keyless, layout_metrics, of_keyed, of_keyless
from nightkeep.model import Estimate, Operation, Request
from nightkeep.protocol import Work

REQUEST = Request(Operation.OPTIMIZE, 0)


def _refuse(snapshot: PaimonSnapshot, request: Request) -> None:
    raise RefusedTable(snapshot.table.name, "everything", "nothing")


def _work(snapshot: PaimonSnapshot, bucket: Bucket, request: Request) -> Work[str]:
    return Work("because", (), 0, Estimate(0, 0, 0, ""), ("task",))


@pytest.mark.parametrize("keyed", [True, False])
def test_each_is_of_its_own_kind(keyed: bool) -> None:
    snapshot = opened(SAMPLES / "orders").snapshot()
    if not keyed:
        bare = replace(snapshot.schema, primary_keys=())
        snapshot = replace(snapshot, schemas=replace(snapshot.schemas, current=bare))
    ours, others = (of_keyed, of_keyless) if keyed else (of_keyless, of_keyed)
    others(_refuse, snapshot, REQUEST)
    with pytest.raises(RefusedTable):
        ours(_refuse, snapshot, REQUEST)
    found = [rule(_work, snapshot, snapshot.units[0], REQUEST) is not None for rule in (in_keyed, in_keyless)]
    assert found == [keyed, not keyed]


def test_a_table_without_keys_has_a_layout_and_no_levels(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = Appended.create(paimon_java, tmp_path / "t", {}, columns=(("n", "INT"),), partitioned=False)
    table.append(3)
    for folder, names in ((table.folder, {"skipping", "overlap", "losing"}), (SAMPLES / "orders", {"lag"})):
        snapshot = opened(folder).snapshot()
        assert names <= layout_metrics(snapshot, snapshot, [snapshot.units[0].key]).keys()
