"""The reader beside Paimon Java's own batch read: samples and random histories, whole, filtered, and in the past."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.drivers.canonical import TypeText, rows_from_arrow, to_python
from tests.drivers.history import play
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout, Scan
from tests.drivers.random_history import merge_history, random_history
from tests.support.extended import some_extended

import nightkeep
from nightkeep.errors import UsageError
from nightkeep.formats.paimon.data import columns as paimon_columns
from nightkeep.spark.engine import Engine
from nightkeep.sql_text.rows.typed_literals import spelled
from nightkeep.tasks import inline, inline_exchange

SHOP = Path(__file__).parents[3] / "samples" / "paimon" / "shop.db"
SAMPLES = (
    "orders",
    "customers",
    "positions",
    "stock",
    "events_input",
    "untouched",
    "ledger",
    "baskets",
    "visits",
    "parcels",
    "prices",
    "events_raw",
)
HISTORIES = tuple(f"{kind}-{seed}" for seed in range(100, 112) for kind in ("plain", "merging"))
FILTERS = 12
OPS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

Rows = list[list[Any]]


@pytest.fixture
def table(request: pytest.FixtureRequest, paimon_java: PaimonJava, tmp_path: Path) -> Path:
    """A sample, or the end of a random history."""
    name = str(request.param)
    if name in SAMPLES:
        return SHOP / name
    kind, _, seed = name.partition("-")
    history = (merge_history if kind == "merging" else random_history)(int(seed))
    paimon_java.create(tmp_path / "table", history.layout)
    play(paimon_java, tmp_path / "table", history.steps)
    return tmp_path / "table"


every_table = pytest.mark.parametrize("table", some_extended((*SAMPLES, *HISTORIES), keep=5), indirect=True)


@pytest.mark.few(2)
@every_table
def test_the_reader_shows_what_java_shows(
    table: Path, paimon_java: PaimonJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paimon_columns, "BATCH_ROWS", 37)
    types = types_of(paimon_java, table)
    for options, view in (({}, None), (MERGE_ON_READ, "merge-on-read")):
        theirs = paimon_java.read(table, Scan(options=options))
        assert in_order(ours(table, types, view=view)) == in_order(theirs.rows), view
    for condition, where in conditions(paimon_java, table, types):
        for options, view in (({}, None), (MERGE_ON_READ, "merge-on-read")):
            wanted = paimon_java.read(table, Scan(filter=condition, options=options))
            assert in_order(ours(table, types, view=view, where=where)) == in_order(wanted.rows), (where, view)


@pytest.mark.few(3)
@every_table
def test_columns_are_those_asked_for_in_their_order(table: Path, paimon_java: PaimonJava) -> None:
    types = types_of(paimon_java, table)
    names = sorted(types, reverse=True)[:2]
    theirs = paimon_java.read(table, Scan(projection=names))
    found = ours(table, {name: types[name] for name in names}, columns=names)
    assert in_order(found) == in_order(theirs.rows)
    where = f"{next(iter(types))} IS NOT NULL"
    condition = {"op": "is_not_null", "field": next(iter(types)), "values": []}
    theirs = paimon_java.read(table, Scan(projection=names, filter=condition))
    assert in_order(ours(table, {n: types[n] for n in names}, columns=names, where=where)) == in_order(theirs.rows)


def test_a_version_and_a_tag_have_the_columns_they_had(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = made(paimon_java, tmp_path / "t", {"deletion-vectors.enabled": "true"})
    paimon_java.write(table, [("+I", k, k * 2, "second") for k in range(5, 15)])
    paimon_java.compact(table, Compaction(full=True))
    paimon_java.create_tag(table, "kept", snapshot=2)
    paimon_java.alter(table, {"change": "rename_column", "name": "note", "to": "text"})
    paimon_java.alter(table, {"change": "add_column", "name": "more", "type": "INT"})
    paimon_java.write(table, [("+I", 99, 1, "third", 7)])
    paimon_java.compact(table)
    newest = [snapshot["id"] for snapshot in paimon_java.snapshots(table)][-1]
    for version in range(1, newest + 1):
        theirs = paimon_java.read(table, Scan(options={"scan.snapshot-id": str(version)}))
        found = nightkeep.read(f"paimon:{table}", version=version).read_all()
        assert tuple(found.column_names) == theirs.columns
        assert in_order([list(row) for row in zip(*found.to_pydict().values(), strict=True)]) == in_order(theirs.rows)
    tagged = nightkeep.read(f"paimon:{table}", tag="kept").read_all()
    theirs = paimon_java.read(table, Scan(options={"scan.tag-name": "kept"}))
    assert tagged.column_names == ["k", "n", "note"] == list(theirs.columns)
    assert in_order([list(row) for row in zip(*tagged.to_pydict().values(), strict=True)]) == in_order(theirs.rows)
    with pytest.raises(UsageError, match="expected a tag among kept, found 'lost'"):
        nightkeep.read(f"paimon:{table}", tag="lost")
    with pytest.raises(UsageError, match=f"expected a version from 1 to {newest}, found 77"):
        nightkeep.read(f"paimon:{table}", version=77)


@pytest.mark.few(1)
@pytest.mark.parametrize("table", some_extended(HISTORIES, keep=2), indirect=True)
def test_a_difference_is_that_of_javas_states(table: Path, paimon_java: PaimonJava) -> None:
    """Java's own difference merges only the files that one snapshot lacks, and so shows late rows that no reader of
    either snapshot sees; where rows are merged, it shows parts of sums. It is asked where neither can be."""
    schema = paimon_java.schema(table)
    snapshots = [each for each in paimon_java.snapshots(table) if each["schemaId"] == schema["id"]]
    types, newest = types_of(paimon_java, table), Counter(merged_rows(paimon_java, table, snapshots[-1]["id"]))
    texts = list(types.values())
    for since in (each["id"] for each in snapshots[:-1]):
        older = Counter(merged_rows(paimon_java, table, since))
        found = nightkeep.read(f"paimon:{table}", incremental="diff", since=since).read_all()
        sides = {
            kind: rows_from_arrow(found.filter(pc.field("_change_type") == kind).drop_columns(["_change_type"]), texts)
            for kind in ("INSERT", "DELETE")
        }
        assert Counter(map(tuple, sides["INSERT"])) == newest - older, since
        assert Counter(map(tuple, sides["DELETE"])) == older - newest, since
        if not {"sequence.field", "merge-engine"} & schema["options"].keys():
            between = f"{since},{snapshots[-1]['id']}"
            options = {"incremental-between": between, "incremental-between-scan-mode": "diff"}
            assert in_order(sides["INSERT"]) == in_order(paimon_java.read(table, Scan(options=options)).rows), since


def merged_rows(engine: PaimonJava, table: Path, version: int) -> Sequence[tuple[Any, ...]]:
    return engine.read(table, Scan(options={"scan.snapshot-id": str(version), **MERGE_ON_READ})).rows


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
        {"merge-engine": "partial-update", "changelog-producer": "lookup"},
        {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"},
        {"merge-engine": "first-row", "deletion-vectors.merge-on-read": "true"},
    ],
    ids=["deduplicate", "aggregation", "lookup changelog", "vectors merged on read", "no vectors to merge on read"],
)
def test_tables_that_merge_on_read_show_their_newest_rows(
    options: Mapping[str, str], paimon_java: PaimonJava, tmp_path: Path
) -> None:
    """Maintenance refuses some of them; their rows can be read all the same."""
    table = made(paimon_java, tmp_path / "t", options)
    paimon_java.write(table, [("+I", k, 1, None if k % 2 else "second") for k in range(5, 15)])
    theirs = paimon_java.read(table)
    found = nightkeep.read(f"paimon:{table}").read_all()
    assert in_order([list(row) for row in zip(*found.to_pydict().values(), strict=True)]) == in_order(theirs.rows)


def test_an_append_table_is_read_file_by_file(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = tmp_path / "t"
    layout = Layout(columns=[("k", "INT"), ("day", "STRING")], partition_keys=["day"], options={"bucket": "-1"})
    paimon_java.create(table, layout)
    for start in (0, 5):
        paimon_java.write(table, [("+I", k, f"d{k % 2}") for k in range(start, start + 10)])
    theirs = paimon_java.read(table)
    found = nightkeep.read(f"paimon:{table}").read_all()
    assert in_order([list(row) for row in zip(*found.to_pydict().values(), strict=True)]) == in_order(theirs.rows)
    plan = nightkeep.read_plan(f"paimon:{table}", where="day = 'd1' AND k > 12")
    assert "1 of 2 partitions left out by partition values" in str(plan)
    assert "1 of 2 files left out by statistics of files" in str(plan)


def test_vectors_of_an_append_table_hide_rows(
    paimon_java: PaimonJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Engine, "mapper", lambda engine: inline)
    monkeypatch.setattr(Engine, "exchange", lambda engine: inline_exchange)
    table = tmp_path / "t"
    options = {"bucket": "-1", "deletion-vectors.enabled": "true", "deletion-vector.index-file.target-size": "1 b"}
    paimon_java.create(table, Layout(columns=[("k", "INT"), ("day", "STRING")], options=options))
    for start in (0, 10, 20):
        paimon_java.write(table, [("+I", k, f"d{k % 2}") for k in range(start, start + 10)])
    for where in ("k IN (3, 4, 15)", "k BETWEEN 22 AND 24 OR k = 9"):
        document = nightkeep.delete(f"paimon:{table}", rows_where=where, no_check=True, reports=tmp_path / "reports")
        assert document.outcome == "verified", document.reason
    theirs = paimon_java.read(table)
    found = nightkeep.read(f"paimon:{table}").read_all()
    assert in_order([list(row) for row in zip(*found.to_pydict().values(), strict=True)]) == in_order(theirs.rows)
    assert found.num_rows == 23
    some = nightkeep.read(f"paimon:{table}", where="k > 20 AND day = 'd1'", columns="k").read_all()
    assert sorted(some.column("k").to_pylist()) == [21, 25, 27, 29]


def test_the_bucket_of_a_key_is_where_java_put_it(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = tmp_path / "t"
    columns = [("a", "INT NOT NULL"), ("b", "STRING NOT NULL"), ("v", "BIGINT")]
    options = {"bucket": "7", "deletion-vectors.enabled": "true"}
    paimon_java.create(table, Layout(columns=columns, primary_keys=["a", "b"], options=options))
    paimon_java.write(table, [("+I", k - 20, f"text number {k}" * (k % 3), k) for k in range(40)])
    paimon_java.compact(table, Compaction(full=True))
    for k in range(40):
        where = f"a = {k - 20} AND b = '{f'text number {k}' * (k % 3)}'"
        plan = nightkeep.read_plan(f"paimon:{table}", where=where)
        buckets = next(each for each in plan.left_out if each.what == "buckets")
        assert buckets.of - buckets.left_out == 1, where
        assert nightkeep.read(f"paimon:{table}", where=where).read_all().column("v").to_pylist() == [k]


def made(engine: PaimonJava, table: Path, options: Mapping[str, str]) -> Path:
    columns = [("k", "INT NOT NULL"), ("n", "INT"), ("note", "STRING")]
    layout = Layout(columns=columns, primary_keys=["k"], options={"bucket": "2", "write-only": "true", **options})
    engine.create(table, layout)
    engine.write(table, [("+I", k, k, "first") for k in range(10)])
    return table


def ours(table: Path, types: Mapping[str, str], **options: Any) -> Rows:
    found: pa.Table = nightkeep.read(f"paimon:{table}", **options).read_all()
    assert found.column_names == list(types)
    return rows_from_arrow(found, list(types.values()))


def types_of(engine: PaimonJava, table: Path) -> dict[str, str]:
    return {field["name"]: field["type"] for field in engine.schema(table)["fields"]}


def in_order(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=repr)


def conditions(engine: PaimonJava, table: Path, types: Mapping[str, str]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Conditions in Java's form and in ours, whose literals the table holds."""
    random = Random(7)
    held = engine.read(table, Scan(options=MERGE_ON_READ))
    made = 0
    while made < FILTERS and held.rows:
        leaves = [leaf(random, held.columns, held.rows, types) for _ in range(random.choice((1, 1, 2)))]
        if any(each is None for each in leaves):
            continue
        made += 1
        known = [each for each in leaves if each is not None]
        if len(known) == 1:
            yield known[0]
            continue
        op = random.choice(("and", "or"))
        yield {"op": op, "children": [one for one, _ in known]}, f" {op} ".join(f"({text})" for _, text in known)


def leaf(
    random: Random, columns: Sequence[str], rows: Sequence[tuple[Any, ...]], types: Mapping[str, str]
) -> tuple[Mapping[str, Any], str] | None:
    """None for a literal that SQL has not, or that Java compares otherwise: a zero with a sign."""
    place = random.randrange(len(columns))
    name, kind = columns[place], TypeText.parse(types[columns[place]])
    op = random.choice((*OPS, "in", "between", "is_null", "is_not_null"))
    if op.startswith("is_"):
        return {"op": op, "field": name, "values": []}, f"`{name}` IS {'NOT ' * (op == 'is_not_null')}NULL"
    held = [row[place] for row in rows if row[place] not in (None, "NaN", "Infinity", "-Infinity", "-0.0", 0.0)]
    if not held or kind.name == "TIME" or (kind.name == "TIMESTAMP" and kind.first > 6):
        return None
    chosen = [random.choice(held) for _ in range({"in": 3, "between": 2}.get(op, 1))]
    arrow = literal_type(kind)
    texts = [spelled(to_python(value, types[name]), arrow) for value in chosen]
    condition = {"op": op, "field": name, "values": chosen}
    if op == "in":
        return condition, f"`{name}` IN ({', '.join(texts)})"
    if op == "between":
        return condition, f"`{name}` BETWEEN {texts[0]} AND {texts[1]}"
    return condition, f"`{name}` {OPS[op]} {texts[0]}"


def literal_type(kind: TypeText) -> pa.DataType:
    plain = {
        "BOOLEAN": pa.bool_(),
        "TINYINT": pa.int8(),
        "SMALLINT": pa.int16(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "DATE": pa.date32(),
    }
    match kind.name:
        case "DECIMAL":
            return pa.decimal128(kind.first, kind.second)
        case "TIMESTAMP":
            return pa.timestamp("us", "UTC" if kind.local else None)
        case "BINARY" | "VARBINARY" | "BYTES":
            return pa.binary()
    return plain.get(kind.name, pa.string())
