"""Honest histories of Iceberg tables, by Java, Flink's writer, iceberg-spark, pyiceberg and Nightkeep: no false alarm.

Each is audited in steps with the mark kept in between, and once whole. NIGHTKEEP_AUDIT_SEEDS=first:last chooses others.
"""

import os
import random
from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.auditing.iceberg_audits import Audited, audited
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_python import pyiceberg_catalog
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.json_lines import EngineError
from tests.formats.iceberg import runs
from tests.formats.iceberg.damaged import iceberg_tables
from tests.formats.iceberg.golden_tables import KEPT
from tests.formats.iceberg.histories import History
from tests.formats.iceberg.nights import Nights
from tests.formats.iceberg.runs import configured
from tests.support.extended import some_extended

from nightkeep.encodings import polars_rows
from nightkeep.model.sweep_rules import DAY_MS

pytestmark = [pytest.mark.slow]

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_AUDIT_SEEDS", "0:44").split(":"))
STEPS = 16
EVER_MS = 3650 * DAY_MS
_REASONS = ("a snapshot that the table keeps, found none", "is not handled")
"""Why an honest compaction may not be provable."""


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate's own decoder, for small files too."""
    monkeypatch.setattr(polars_rows, "LEAST_ROWS", 1)


def require_proven(found: Audited) -> int:
    """How many commits that keep rows were proven: all of them, but those with a stated reason."""
    found.require_sound()
    keeping = [each for each in found.commits if each["claim"] == "keeps-rows"]
    for each in keeping:
        assert each["verdict"] == "proven" or any(why in str(each["why"]) for why in _REASONS), each["why"]
    return sum(each["verdict"] == "proven" for each in keeping)


@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=2))
def test_what_java_flinks_writer_and_nights_do(seed: int, iceberg_java: IcebergJava, iceberg: Warehouse) -> None:
    with configured(iceberg):
        lake = Nights(iceberg_java, iceberg.table())
        history = History(lake, seed)
        chance = random.Random(seed)
        changes = [history.append, history.java_changes, history.our_changes, history.delete_keys]
        changes += [history.delete_positions, history.drop_partition, history.evolve, history.evolve]
        keeping = [history.compact, history.manifests, history.night, history.night]
        history.append()
        steps, proven = list[str](), 0
        try:
            for _ in range(STEPS):
                step = chance.choice([*changes, *keeping, *keeping])
                steps.append(step.__name__)
                history.told.append(step.__name__)
                step()
                if chance.random() < 0.3:
                    proven += require_proven(audited(lake.table))
            proven += require_proven(audited(lake.table))
            whole = audited(lake.table, mark="whole", since_ms=EVER_MS)
            assert require_proven(whole) == proven
        except Exception as failure:
            raise AssertionError(f"seed {seed}: {'; '.join(history.told)}") from failure


@pytest.fixture(scope="module")
def golden_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Table]]:
    before = dict(os.environ)
    try:
        yield iceberg_tables(tmp_path_factory.mktemp("golden"), KEPT)
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.mark.parametrize("name", KEPT)
def test_golden_tables_of_java_and_spark(name: str, golden_tables: dict[str, Table]) -> None:
    require_proven(audited(golden_tables[name], since_ms=EVER_MS))


PROCEDURES = (
    "rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))",
    "rewrite_data_files(table => '{name}', strategy => 'sort', sort_order => 'id DESC', "
    "options => map('rewrite-all', 'true', 'max-concurrent-file-group-rewrites', '1'))",
    "rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true', 'partial-progress.enabled', 'true', "
    "'max-file-group-size-bytes', '2000'))",
    "rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))",
    "rewrite_position_delete_files(table => '{name}', options => map('rewrite-all', 'true'))",
    "rewrite_manifests('{name}')",
)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("seed", some_extended(range(4), keep=1))
def test_what_spark_does(
    seed: int, version: int, iceberg_spark: IcebergSpark, iceberg_java: IcebergJava, iceberg: Warehouse
) -> None:
    """Its rewrites between merge on read and copy on write, and Flink's upserts."""
    chance, table = random.Random(seed), iceberg.table("db.t")
    mode = chance.choice(["merge-on-read", "copy-on-write"])
    modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    with configured(iceberg):
        iceberg_java.create(
            table, runs.COLUMNS, Layout(partition=(("day", "identity"),), format_version=version, properties=modes)
        )
        iceberg_spark.attach(iceberg)
        changes = (
            f"INSERT INTO {table.sql} SELECT id, concat('2026-11-0', 1 + id % 3), id / 4.0, 'new' FROM range(60)",
            f"DELETE FROM {table.sql} WHERE id % 7 = {{n}}",
            f"UPDATE {table.sql} SET note = 'changed' WHERE id % 5 = {{n}}",
            f"MERGE INTO {table.sql} t USING (SELECT id FROM range(9, 40, 6)) s ON t.id = s.id "
            "WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET price = {n}",
        )
        iceberg_spark.sql(changes[0])
        proven = 0
        for _ in range(8):
            iceberg_spark.sql(chance.choice(changes).format(n=chance.randrange(5)))
            if chance.random() < 0.4:
                rows = [("+U", runs.row(runs.DAYS[n % 3], n, "upsert")) for n in chance.sample(range(60), 6)]
                iceberg_java.cdc(table, rows, keys=["id", "day"])
            procedure = chance.choice(PROCEDURES).format(name=table.name)
            try:
                iceberg_spark.sql(f"CALL {iceberg.name}.system.{procedure}")
            except EngineError as failure:
                assert "rewrite_position_delete_files" in procedure, failure
            if chance.random() < 0.4:
                proven += require_proven(audited(table))
        proven += require_proven(audited(table))
        assert require_proven(audited(table, mark="whole", since_ms=EVER_MS)) == proven > 0


def test_what_pyiceberg_does(iceberg: Warehouse) -> None:
    """Appends, deletes by copy on write, and overwrites."""
    rows = pa.table({"id": pa.array(range(20), pa.int64()), "day": ["a", "b"] * 10, "note": ["as written"] * 20})
    iceberg.folder.mkdir()
    with configured(iceberg), pyiceberg_catalog(iceberg) as catalog:
        catalog.create_namespace("db")
        theirs = catalog.create_table("db.t", rows.schema)
        with theirs.update_spec() as spec:
            spec.add_identity("day")
        table = iceberg.table("db.t")
        for start in range(3):
            theirs.append(rows.slice(start, 9))
        theirs.delete("id < 3")
        require_proven(audited(table))
        theirs.overwrite(rows.slice(0, 5), overwrite_filter="day == 'a'")
        theirs.append(rows)
        theirs.dynamic_partition_overwrite(rows.slice(3, 6))
        require_proven(audited(table))
        theirs.delete("day == 'b'")
        require_proven(audited(table))
        require_proven(audited(table, mark="whole", since_ms=EVER_MS))
