"""Audits of Iceberg tables whose snapshots expire, that nobody changed, and that no operation rewrites."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.auditing.iceberg_audits import audited
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.recipe_fixtures import Made
from tests.formats.iceberg.runs import COLUMNS, DAYS, changed, configured, row

from nightkeep.auditing import audit as audit_module
from nightkeep.formats.iceberg.reading import past
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.storage import LocalStorage

pytestmark = [pytest.mark.slow]

EVER_MS = 3650 * DAY_MS
ALL = {"rewrite-all": "true"}


@pytest.fixture(autouse=True)
def catalog(iceberg: Warehouse) -> Iterator[None]:
    with configured(iceberg):
        yield


@pytest.fixture
def table(iceberg_java: IcebergJava, iceberg: Warehouse) -> Table:
    """With deletes, and compacted once."""
    found = iceberg.table("shop.events")
    changed(iceberg_java, found, version=2)
    return found


def compacted(java: IcebergJava, table: Table) -> int:
    return java.commit_rewrite(table, java.begin_rewrite(table, options=ALL))


def test_a_base_that_expired_is_not_provable_and_later_commits_are(iceberg_java: IcebergJava, table: Table) -> None:
    first = compacted(iceberg_java, table)
    iceberg_java.append(table, [row(DAYS[0], 900)])
    second = compacted(iceberg_java, table)
    iceberg_java.expire(table, older_than_millis=2**45, retain_last=3)
    found = audited(table, since_ms=EVER_MS).require_sound()
    assert found.outcome is Outcome.VERIFIED
    assert (found.verdicts[first], found.verdicts[second]) == ("not provable", "proven")
    assert "which it is built on, cannot be read" in (found.document.reason or "")
    assert f"snapshots before {first} have expired" in (found.document.reason or "")


def test_what_was_audited_and_has_expired_since_has_not_vanished(iceberg_java: IcebergJava, table: Table) -> None:
    compacted(iceberg_java, table)
    audited(table).require_sound()
    for number in range(3):
        iceberg_java.append(table, [row(DAYS[0], 900 + number)])
    last = compacted(iceberg_java, table)
    iceberg_java.expire(table, older_than_millis=2**45, retain_last=2)
    found = audited(table).require_sound()
    assert found.verdicts[last] == "proven"
    iceberg_java.append(table, [row(DAYS[0], 990)])
    iceberg_java.expire(table, older_than_millis=2**45, retain_last=1)
    audited(table).require_sound()


def test_snapshots_that_expire_between_metadata_and_rows(
    iceberg_java: IcebergJava, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java's expiry runs when the commits are known, and before their rows are read."""
    compacted(iceberg_java, table)
    ranged = audit_module.audit_range

    def expired(*arguments: Any, **named: Any) -> Any:
        found = ranged(*arguments, **named)
        iceberg_java.expire(table, older_than_millis=2**45, retain_last=1)
        return found

    monkeypatch.setattr(audit_module, "audit_range", expired)
    found = audited(table).require_sound()
    assert found.outcome is Outcome.SKIPPED
    assert "not provable" in found.verdicts.values()


def test_snapshots_that_expire_while_their_manifests_are_read(
    iceberg_java: IcebergJava, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = compacted(iceberg_java, table)
    listed, pending = past.listed_manifests, [1]

    def expiring(*arguments: Any, **named: Any) -> Any:
        if pending:
            pending.clear()
            iceberg_java.expire(table, older_than_millis=2**45, retain_last=1)
        return listed(*arguments, **named)

    monkeypatch.setattr(past, "listed_manifests", expiring)
    found = audited(table).require_sound()
    assert found.verdicts == {last: "not provable"}
    assert "expired meanwhile" in (found.document.reason or "")


def test_a_manifest_list_that_is_gone_without_an_expiry(iceberg_java: IcebergJava, table: Table) -> None:
    last = compacted(iceberg_java, table)
    document = table.document()
    lists = {each["snapshot-id"]: each["manifest-list"] for each in document["snapshots"]}
    Path(lists[last].removeprefix("file:")).unlink()
    found = audited(table)
    assert found.outcome is Outcome.MISMATCH
    assert {version: each["verdict"] for version, each in found.wrong.items()} == {last: "unsound"}
    assert "found no such file" in str(found.wrong[last]["why"])


@pytest.fixture
def read_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that are read or opened, in order."""
    names: list[str] = []
    read, opened = LocalStorage.read, LocalStorage.open

    def counted_read(self: LocalStorage, name: str, *more: Any, **named: Any) -> Any:
        names.append(name)
        return read(self, name, *more, **named)

    def counted_open(self: LocalStorage, name: str, *more: Any, **named: Any) -> Any:
        names.append(name)
        return opened(self, name, *more, **named)

    monkeypatch.setattr(LocalStorage, "read", counted_read)
    monkeypatch.setattr(LocalStorage, "open", counted_open)
    return names


def test_an_unchanged_table_costs_the_metadata_of_one_version(
    iceberg_java: IcebergJava, table: Table, read_names: list[str]
) -> None:
    compacted(iceberg_java, table)
    audited(table).require_sound()
    read_names.clear()
    found = audited(table).require_sound()
    assert found.outcome is Outcome.UNCHANGED
    of_table = {name for name in read_names if "/shop/events/" in name}
    assert of_table == {str(table.metadata).lstrip("/")}


def test_a_new_commit_costs_what_it_changed(iceberg_java: IcebergJava, table: Table, read_names: list[str]) -> None:
    compacted(iceberg_java, table)
    audited(table).require_sound()
    snapshot = iceberg_java.append(table, [row(DAYS[0], 900)])
    read_names.clear()
    found = audited(table).require_sound()
    assert found.verdicts == {snapshot: "consistent"}
    assert len({name for name in read_names if name.endswith(".parquet")}) == 1, "the file that it added"
    assert sum("snap-" in name.rpartition("/")[2] for name in set(read_names)) == 2, "its list, and its parent's"


def test_a_budget_leaves_commits_for_the_next_audit(iceberg_java: IcebergJava, iceberg: Warehouse) -> None:
    """The first unit is compared whatever its size."""
    table = iceberg.table("shop.all")
    iceberg_java.create(table, COLUMNS)
    iceberg_java.append(table, [row(DAYS[0], 1)])
    audited(table).require_sound()
    keeping = []
    for number in range(3):
        iceberg_java.append(table, [row(DAYS[0], 900 + number)])
        keeping.append(compacted(iceberg_java, table))
    proven: list[int] = []
    for left in (3, 1, 0):
        found = audited(table, byte_budget=1).require_sound()
        assert found.section["left"] == left
        proven += [version for version, verdict in found.verdicts.items() if verdict == "proven"]
    assert proven == keeping
    assert audited(table).outcome is Outcome.UNCHANGED


def test_a_commit_that_is_over_the_budget_alone_does_not_stop_the_next(iceberg_java: IcebergJava, table: Table) -> None:
    """It has two units, of which the budget takes one."""
    audited(table)
    compacted(iceberg_java, table)
    iceberg_java.append(table, [row(DAYS[2], 900)])
    iceberg_java.commit_rewrite(table, iceberg_java.begin_rewrite(table, where=_of(DAYS[2]), options=ALL))
    first, second = (audited(table, byte_budget=1).require_sound() for _ in range(2))
    assert [*first.verdicts.values()] == ["not provable"] and first.section["left"] == 2
    assert "over the budget of the audit" in (first.document.reason or "")
    assert [*second.verdicts.values()] == ["consistent", "proven"]


def _of(day: str) -> dict[str, Any]:
    return {"type": "eq", "term": "day", "value": day}


@pytest.mark.parametrize("name", ["first_version", "avro_data_v2", "orc_data_v2", "orc_data_v3"])
def test_tables_of_every_format_are_proven(name: str, iceberg_java: IcebergJava, make: Made) -> None:
    table = make(name)
    kept = iceberg_java.rewrite_manifests(table)
    found = audited(table, since_ms=EVER_MS).require_sound()
    assert found.verdicts[kept] == "proven"
    moved = compacted(iceberg_java, table)
    after = audited(table).require_sound()
    assert (after.outcome, after.verdicts) == (Outcome.VERIFIED, {moved: "proven"})


def test_a_compaction_into_another_partition_spec_is_proven(iceberg_java: IcebergJava, table: Table) -> None:
    """The rows of every partition go to others."""
    audited(table).require_sound()
    iceberg_java.alter(table, {"change": "add_partition_field", "column": "id", "transform": "bucket[2]"})
    moved = compacted(iceberg_java, table)
    assert audited(table).require_sound().verdicts == {moved: "proven"}


def test_a_compaction_after_an_upgrade_is_proven(iceberg_java: IcebergJava, table: Table) -> None:
    """It gives all rows their ids."""
    audited(table).require_sound()
    iceberg_java.alter(table, {"change": "set_properties", "properties": {"format-version": "3"}})
    moved = compacted(iceberg_java, table)
    assert audited(table).require_sound().verdicts == {moved: "proven"}


def test_a_compaction_into_another_partition_spec_after_an_upgrade_is_proven(
    iceberg_java: IcebergJava, table: Table
) -> None:
    """Partitions that only one of both versions has are compared without ids as well."""
    audited(table).require_sound()
    iceberg_java.alter(table, {"change": "set_properties", "properties": {"format-version": "3"}})
    iceberg_java.alter(table, {"change": "remove_partition_field", "name": "day"})
    moved = compacted(iceberg_java, table)
    assert audited(table).require_sound().verdicts == {moved: "proven"}
