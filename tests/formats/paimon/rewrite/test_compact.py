"""The rule of `optimize` for tables without vectors: what is planned and said, and which tables are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from tests.formats.paimon.contents import SAMPLES, opened
from tests.formats.paimon.made_bucket import MadeBucket, Row

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.schema import PaimonField
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot, Schemas
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.formats.paimon.rewrite.compact import compact_levels, refuse_other_compactions, refuse_vectors
from nightkeep.model import Clustering, Curve, Operation, Request

OPTIMIZE = Request(Operation.OPTIMIZE, 1_767_268_800_000)
PLAIN = {"deletion-vectors.enabled": "false", "num-sorted-run.compaction-trigger": "3"}
UPDATES = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
SUMS = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
EXTENDED = "taken with all older runs: "


@pytest.fixture(scope="module")
def ledger() -> PaimonSnapshot:
    return opened(SAMPLES / "ledger").snapshot()


def with_options(snapshot: PaimonSnapshot, options: Mapping[str, str]) -> PaimonSnapshot:
    schema = replace(snapshot.schema, options={**snapshot.schema.options, **options})
    return replace(snapshot, schemas=replace(snapshot.schemas, current=schema))


def of_type(bucket: Bucket, text: str) -> Bucket:
    """The same with another type of its value column, for the plan only."""
    key, value = bucket.schemas.current.fields
    schema = replace(bucket.schemas.current, fields=(key, PaimonField(value.id, value.name, parse_type(text))))
    return replace(bucket, schemas=Schemas(schema, {0: schema}))


def planned(
    snapshot: PaimonSnapshot,
    options: Mapping[str, str],
    files: Sequence[tuple[int, Sequence[Row]]],
    *,
    value: str = "STRING",
    full: bool = False,
) -> tuple[str, int, bool] | None:
    """The reason, the output level, and whether deletes end."""
    made = MadeBucket({**PLAIN, **options})
    for level, rows in files:
        made.add(level, rows)
    bucket = of_type(made.bucket(), value)
    work = compact_levels(replace(snapshot, schemas=bucket.schemas), bucket, replace(OPTIMIZE, full=full))
    if work is None:
        return None
    (task,) = work.tasks
    assert not isinstance(task, str) and not task.looks_up  # type: ignore[union-attr]
    return work.reason, task.output_level, task.drops_retracts  # type: ignore[union-attr]


BASE = (5, [Row(key, "a" * 99, key) for key in range(1000)])
NEWER = (0, [Row(7, "b", 2000), Row(9, "c", 2001)])
NEWEST = (0, [Row(7, "d", 3000), Row(8, "e", 3001)])
DELETING = (0, [Row(7, "d", 3000, 3), Row(8, "e", 3001)])


def test_runs_that_are_not_due_are_left(ledger: PaimonSnapshot) -> None:
    assert planned(ledger, {}, [BASE, NEWER]) is None
    assert planned(ledger, {}, [BASE], full=True) is None
    assert planned(ledger, {}, []) is None


@pytest.mark.parametrize("deleting", [False, True])
def test_small_runs_are_merged_above_a_large_one(ledger: PaimonSnapshot, deleting: bool) -> None:
    found = planned(ledger, {}, [BASE, NEWER, DELETING if deleting else NEWEST])
    assert found is not None and found[1:] == (4, False)
    assert found[0].endswith(
        "to level 4: 2 files merged, 0 upgraded in place; deletes stay, as older rows may be below"
    )


def test_a_full_compaction_takes_all(ledger: PaimonSnapshot) -> None:
    found = planned(ledger, {}, [BASE, NEWER], full=True)
    assert found is not None and found[1:] == (5, True)
    assert found[0] == ("full compaction asked for; to level 5: 2 files merged, 0 upgraded in place; deletes end here")


@pytest.mark.parametrize(
    ("options", "newest", "value", "why"),
    [
        (UPDATES, NEWEST, "STRING", None),
        (UPDATES, DELETING, "STRING", "they hold deletes"),
        ({**UPDATES, "sequence.field": "v"}, NEWEST, "STRING", "older by sequence.field"),
        ({"sequence.field": "v"}, DELETING, "STRING", None),
        ({**UPDATES}, (0, [Row(7, "d", 999), Row(8, "e", 3001)]), "STRING", "their sequence numbers overlap"),
        (SUMS, NEWEST, "INT", None),
        (SUMS, DELETING, "INT", None),
        (SUMS, NEWEST, "DOUBLE", "the sum of column v depends on the order of additions"),
        ({**SUMS, "aggregation.remove-record-on-delete": "true"}, DELETING, "INT", "they hold deletes"),
        ({**SUMS, "fields.v.aggregate-function": "last_value"}, DELETING, "INT", None),
        ({**SUMS, "fields.v.aggregate-function": "last_non_null_value"}, DELETING, "INT", "they hold deletes"),
        ({**SUMS, "fields.v.aggregate-function": "listagg"}, NEWEST, "STRING", "function listagg of column v"),
        (UPDATES, (0, [Row(70, "d", 3000, 3), Row(80, "e", 3001)]), "STRING", None),
    ],
)
def test_a_merge_that_needs_the_rows_below_takes_them_along(
    ledger: PaimonSnapshot, options: Mapping[str, str], newest: tuple[int, list[Row]], value: str, why: str | None
) -> None:
    found = planned(ledger, options, [BASE, NEWER, newest], value=value)
    assert found is not None
    assert (EXTENDED in found[0]) == (why is not None), found[0]
    if why is None:
        assert found[1:] == (4, False)
    else:
        assert found[1:] == (5, True) and why in found[0]


def test_what_it_is_stated_to_cost(ledger: PaimonSnapshot) -> None:
    (bucket,) = ledger.units
    work = compact_levels(ledger, bucket, replace(OPTIMIZE, full=True))
    assert work is not None
    held = sum(file.bytes for file in bucket.files)
    assert (work.estimate.read_bytes, work.estimate.files_after) == (held, 1)
    assert work.estimate.benefit == f"2 sorted runs of {held:,} bytes become 1"


def test_tables_are_refused_by_name(ledger: PaimonSnapshot) -> None:
    for refuse in (refuse_vectors, refuse_other_compactions):
        refuse(ledger, OPTIMIZE)
    with pytest.raises(RefusedTable, match=r"option deletion-vectors\.enabled = true"):
        refuse_vectors(with_options(ledger, {"deletion-vectors.enabled": "true"}), OPTIMIZE)
    for options, named in [
        ({"merge-engine": "first-row"}, "option merge-engine = first-row is not handled"),
        ({"force-lookup": "true"}, "option force-lookup = true is not handled"),
    ]:
        with pytest.raises(RefusedTable, match=named):
            refuse_other_compactions(with_options(ledger, options), OPTIMIZE)
    clustered = replace(OPTIMIZE, clustering=Clustering(("id",), Curve.Z))
    with pytest.raises(RefusedTable, match="files of a table with a primary key are sorted by key"):
        refuse_other_compactions(ledger, clustered)


def test_vectors_that_readers_no_longer_apply_are_refused() -> None:
    orders = opened(SAMPLES / "orders").snapshot()
    assert any(unit.index_records for unit in orders.units)
    with pytest.raises(RefusedTable, match=r"has deletion vectors, and option deletion-vectors\.enabled is not true"):
        refuse_vectors(with_options(orders, {"deletion-vectors.enabled": "false"}), OPTIMIZE)
