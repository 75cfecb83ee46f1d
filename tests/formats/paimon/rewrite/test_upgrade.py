"""The upgrade rule over the samples: what is planned, what it is said to cost, and which tables are refused."""

from dataclasses import replace

import pytest
from tests.formats.paimon.contents import SAMPLES, opened

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.formats.paimon.rewrite.rewrite import UpgradeTask
from nightkeep.formats.paimon.rewrite.steps import StepKind
from nightkeep.formats.paimon.rewrite.upgrade import (
    file_indexes_go,
    refuse_append_table,
    refuse_modified_vectors,
    refuse_without_vectors,
    upgrade_level0,
)
from nightkeep.model import Operation, Request
from nightkeep.model.counted import counted

UPGRADE = Request(Operation.UPGRADE, 1_767_268_800_000)


@pytest.fixture(scope="module")
def stock() -> PaimonSnapshot:
    return opened(SAMPLES / "stock").snapshot()


def with_options(snapshot: PaimonSnapshot, **options: str) -> PaimonSnapshot:
    named = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    schema = replace(snapshot.schema, options={**snapshot.schema.options, **named})
    return replace(snapshot, schemas=replace(snapshot.schemas, current=schema))


@pytest.mark.parametrize("sample", ["stock", "orders"])
def test_every_level0_file_of_a_bucket_is_work(sample: str) -> None:
    snapshot, lifted = opened(SAMPLES / sample).snapshot(), 0
    for bucket in snapshot.units:
        level0 = {file.name for file in bucket.files if file.level == 0}
        work = upgrade_level0(snapshot, bucket, UPGRADE)
        if not level0:
            continue
        lifted += 1
        assert work is not None and level0 <= set(work.input_files)
        (task,) = work.tasks
        assert isinstance(task, UpgradeTask)
        named = {file.name: file for file in bucket.files}
        assert work.input_bytes == sum(named[name].bytes for name in work.input_files)
        merged = [f for step in task.steps if step.kind is StepKind.MERGE for f in step.files]
        deeper = [f for f in bucket.files if f.level > task.output_level]
        estimate, size = work.estimate, sum(f.bytes for f in merged)
        assert estimate.more_bytes == estimate.written_bytes - size < 0
        assert estimate.more_files == 1 - len(merged) and estimate.files_after == 1
        assert estimate.read_bytes == work.input_bytes + sum(f.bytes for f in deeper)
        rows = sum(named[name].rows for name in level0)
        found = f"{counted(rows, 'row')} of {counted(len(level0), 'level-0 file')}"
        assert estimate.benefit == f"{found} become visible to batch readers"
        assert "key-only lookup" in work.reason
    assert lifted


def test_a_bucket_without_level0_is_left_unless_everything_is_asked_for(stock: PaimonSnapshot) -> None:
    bucket = next(bucket for bucket in stock.units if any(file.level for file in bucket.files))
    settled = replace(bucket, files=tuple(file for file in bucket.files if file.level), vectors=())
    assert upgrade_level0(stock, settled, UPGRADE) is None
    empty = replace(bucket, files=(), vectors=())
    assert upgrade_level0(stock, empty, replace(UPGRADE, full=True)) is None


def test_everything_goes_to_the_top_where_that_is_asked_for(stock: PaimonSnapshot) -> None:
    for bucket in stock.units:
        work = upgrade_level0(stock, bucket, replace(UPGRADE, full=True))
        assert work is not None and set(work.input_files) == {file.name for file in bucket.files}
        assert work.reason.startswith("full compaction asked for; to level 5: ")


def test_a_sequence_field_asks_for_values(stock: PaimonSnapshot) -> None:
    by_value = with_options(stock, sequence__field=stock.schema.fields[-1].name)
    bucket = next(bucket for bucket in stock.units if any(file.level == 0 for file in bucket.files))
    work = upgrade_level0(by_value, bucket, UPGRADE)
    assert work is not None and work.reason.endswith("full rows of replaced keys (sequence.field)")
    assert work.tasks[0].values_needed  # type: ignore[attr-defined]


def test_a_changelog_asks_for_values_and_upgrades_files_in_place_all_the_same(stock: PaimonSnapshot) -> None:
    telling = with_options(stock, changelog_producer="lookup")
    for bucket in (bucket for bucket in stock.units if any(file.level == 0 for file in bucket.files)):
        plain, work = upgrade_level0(stock, bucket, UPGRADE), upgrade_level0(telling, bucket, UPGRADE)
        assert plain is not None and work is not None
        assert work.reason.endswith("full rows of replaced keys (changelog-producer lookup)")
        assert work.tasks[0].values_needed and not plain.tasks[0].values_needed  # type: ignore[attr-defined]
        assert work.tasks[0].steps == plain.tasks[0].steps  # type: ignore[attr-defined]
        level0 = sum(file.bytes for file in bucket.files if file.level == 0)
        assert work.estimate.written_bytes == plain.estimate.written_bytes + 2 * level0


def test_file_indexes_that_go_are_reported(stock: PaimonSnapshot) -> None:
    assert file_indexes_go(stock) is None
    indexed = with_options(stock, file_index__bloom_filter__columns="sku")
    assert file_indexes_go(indexed) is not None


def test_a_table_is_refused_by_what_upgrading_needs(stock: PaimonSnapshot) -> None:
    append = replace(stock, schemas=replace(stock.schemas, current=replace(stock.schema, primary_keys=())))
    refuse_append_table(stock, UPGRADE)
    with pytest.raises(RefusedTable, match="a table without primary key has no levels"):
        refuse_append_table(append, UPGRADE)
    refuse_without_vectors(stock, UPGRADE)
    with pytest.raises(RefusedTable, match=r"option deletion-vectors\.enabled is not true"):
        refuse_without_vectors(with_options(stock, deletion_vectors__enabled="false"), UPGRADE)
    late = with_options(stock, deletion_vectors__modifiable="true")
    refuse_modified_vectors(stock, UPGRADE)
    refuse_modified_vectors(late, replace(UPGRADE, full=True))
    with pytest.raises(RefusedTable, match="levels may still repeat keys"):
        refuse_modified_vectors(late, UPGRADE)
