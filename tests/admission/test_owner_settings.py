"""What owners say in their tables' own properties, in every format: gentler only; and tables that others manage."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.discovery.warehouses import SAMPLES, place_samples

import nightkeep
from nightkeep.admission.order import Order, RemovalOptions
from nightkeep.admission.owner_settings import OwnerSettings, owner_settings
from nightkeep.errors import RefusedTable
from nightkeep.formats import open_table
from nightkeep.formats.iceberg.catalog.catalog import parse_location
from nightkeep.formats.iceberg.catalog.description import described
from nightkeep.model import Address, Operation, Outcome
from nightkeep.model.description import TableDescription
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.policy import load, parse_duration
from nightkeep.records import RunDocument
from nightkeep.retention.expire import expire_order
from nightkeep.retention.sweep import sweep_order
from nightkeep.running.inspection.table_status import TableStatus, read_status
from nightkeep.running.run_log import RunLog
from nightkeep.storage import LocalStorage

FORMATS = ("paimon", "delta", "iceberg")
DAY = parse_duration("1d")


@dataclass
class Lake:
    """Copies of a sample of each format, whose owners set properties."""

    folder: Path

    def address(self, kind: str) -> str:
        if kind == "iceberg":
            return "iceberg:lake/shop.orders"
        return f"{kind}:{self.folder}/warehouse/{kind}/shop.db/{'orders' if kind == 'paimon' else 'clicks'}"

    def says(self, kind: str, properties: Mapping[str, str]) -> None:
        {"paimon": self._paimon, "delta": self._delta, "iceberg": self._iceberg}[kind](properties)

    def plan(self, kind: str, policy: str = "") -> RunDocument:
        file = self.folder / "tables.yaml"
        file.write_text(f"version: 1\n{policy}")
        operation = {"paimon": "upgrade"}.get(kind, "optimize")
        return nightkeep.plan(self.address(kind), operation=operation, policy=file, reports=self.reports)[0]

    def status(self, kind: str) -> TableStatus:
        policy = load(self.folder / "tables.yaml").effective(self.address(kind))
        return read_status(policy, self.reports, now=datetime.now(UTC))

    @property
    def reports(self) -> str:
        return str(self.folder / "reports")

    def _paimon(self, properties: Mapping[str, str]) -> None:
        schemas = self.folder / "warehouse/paimon/shop.db/orders/schema"
        newest = max(int(path.name.partition("-")[2]) for path in schemas.glob("schema-*"))
        schema = json.loads((schemas / f"schema-{newest}").read_text())
        schema |= {"id": newest + 1, "options": {**schema["options"], **properties}}
        (schemas / f"schema-{newest + 1}").write_text(json.dumps(schema))

    def _delta(self, properties: Mapping[str, str]) -> None:
        log = self.folder / "warehouse/delta/shop.db/clicks/_delta_log"
        commits = sorted(log.glob("*.json"))
        found = [json.loads(line) for path in commits for line in path.read_text().splitlines() if "metaData" in line]
        metadata = found[-1]["metaData"]
        metadata["configuration"] |= properties
        name = f"{int(commits[-1].stem) + 1:020}.json"
        (log / name).write_text(json.dumps({"metaData": metadata}) + "\n")

    def _iceberg(self, properties: Mapping[str, str]) -> None:
        catalog = SqlCatalog("lake", uri=f"sqlite:///{self.folder}/warehouse/iceberg/catalog.db")
        with catalog.load_table(("shop", "orders")).transaction() as change:
            change.set_properties(dict(properties))
        catalog.close()


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("NIGHTKEEP_WAREHOUSE", str(tmp_path))
    return Lake(place_samples(tmp_path, monkeypatch))


def closed_now() -> str:
    hour = (datetime.now(UTC) + timedelta(hours=6)).hour
    return f"{hour:02}:00-{hour:02}:30 UTC"


@pytest.mark.parametrize("kind", FORMATS)
def test_an_owner_may_pause_a_table_and_give_it_a_window(lake: Lake, kind: str) -> None:
    assert lake.plan(kind).plan.units and not any("skipped now" in note for note in lake.plan(kind).plan.notes)
    for properties, why in (
        ({"nightkeep.window": closed_now()}, f"outside its owner's window {closed_now()} (nightkeep.window)"),
        ({"nightkeep.pause": "a backfill"}, "paused by its owner (nightkeep.pause): a backfill"),
    ):
        lake.says(kind, properties)
        assert f"a run would be skipped now: {why}" in lake.plan(kind).plan.notes
        (done,) = nightkeep.run(
            lake.address(kind), operation={"paimon": "upgrade"}.get(kind, "optimize"), reports=lake.reports
        )
        assert (done.outcome, done.reason, done.committed_version) == (Outcome.SKIPPED, why, None)
    assert lake.status(kind).held_back == why
    for swept in (
        nightkeep.sweep(lake.address(kind), reports=lake.reports),
        nightkeep.sweep(lake.address(kind), delete=True, reports=lake.reports),
        nightkeep.expire(lake.address(kind), reports=lake.reports),
        nightkeep.expire(lake.address(kind), delete=True, reports=lake.reports),
    ):
        assert (swept.outcome, swept.reason) == (Outcome.SKIPPED, why)
    # Harsher it cannot be: neither does the policy's own pause end.
    lake.says(kind, {"nightkeep.pause": "false", "nightkeep.window": "00:00-23:59 UTC"})
    assert "paused: ours" in str(lake.plan(kind, "defaults: {pause: ours}\n").reason)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"nightkeep.window": "at night"}, "its property nightkeep.window: expected a window with its time zone"),
        ({"nightkeep.expire.retain_last": "0"}, "nightkeep.expire.retain_last: expected a whole number, at least 1"),
        ({"nightkeep.pasue": "x"}, "its property nightkeep.pasue is not known; set one of nightkeep.pause, "),
    ],
)
def test_what_cannot_be_understood_is_refused_by_name(
    lake: Lake, kind: str, properties: Mapping[str, str], why: str
) -> None:
    lake.says(kind, properties)
    planned = lake.plan(kind)
    assert planned.outcome is Outcome.REFUSED and why in str(planned.reason)
    swept = nightkeep.sweep(lake.address(kind), reports=lake.reports)
    assert swept.outcome is Outcome.REFUSED and why in str(swept.reason)


@pytest.mark.parametrize(
    ("kind", "properties", "sign"),
    [
        (
            "delta",
            {"delta.autoOptimize.autoCompact": "auto"},
            "auto compaction (delta.autoOptimize.autoCompact = auto)",
        ),
        ("iceberg", {"self-optimizing.enabled": "true"}, "Amoro's self-optimizing (self-optimizing.enabled = true)"),
    ],
)
def test_a_table_that_others_manage_is_refused_until_the_policy_knows(
    lake: Lake, kind: str, properties: dict[str, str], sign: str
) -> None:
    lake.says(kind, dict.fromkeys(properties, "false"))
    assert lake.plan(kind).outcome is Outcome.SKIPPED
    lake.says(kind, properties)
    planned = lake.plan(kind)
    assert planned.outcome is Outcome.REFUSED
    assert f"it is managed by {sign} as well; turn that off, or set other_managers: known" in str(planned.reason)
    assert lake.status(kind).why.startswith("refused: ")
    swept = nightkeep.sweep(lake.address(kind), delete=True, reports=lake.reports)
    assert swept.outcome is Outcome.REFUSED and sign in str(swept.reason)
    # Files may be listed, whoever manages the table.
    assert nightkeep.sweep(lake.address(kind), reports=lake.reports).outcome is not Outcome.REFUSED
    planned = lake.plan(kind, "defaults: {other_managers: known}\n")
    assert planned.outcome is Outcome.SKIPPED and planned.plan.units


def test_tables_of_s3_tables_are_known_by_their_bucket_and_their_catalog(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = open_table(Address("iceberg", "lake/shop.orders", "t")).snapshot()
    handle = parse_location("lake/shop.orders", LocalStorage("/"))
    assert described(handle, snapshot).managers == ()  # type: ignore[arg-type]
    location = "s3://63a8e430-6e0b-46f5-k833abtwr6s8tmtsycedn8s4yc3xhuse1b--table-s3"
    snapshot.metadata["location"] = location  # type: ignore[attr-defined]
    assert described(handle, snapshot).managers == (f"S3 Tables (location {location})",)  # type: ignore[arg-type]
    snapshot.metadata["location"] = "s3://bucket/my--table-s3"  # type: ignore[attr-defined]
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", "arn:aws:s3tables:eu-west-1:123456789012:bucket/mine")
    assert described(handle, snapshot).managers == ("S3 Tables (warehouse of catalog lake)",)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", FORMATS)
def test_ages_and_counts_of_the_owner_only_lengthen(lake: Lake, kind: str) -> None:
    lake.says(
        kind,
        {"nightkeep.sweep.older_than": "20d", "nightkeep.expire.older_than": "9d", "nightkeep.expire.retain_last": "5"},
    )
    (lake.folder / "tables.yaml").write_text("version: 1\n")
    policy = load(lake.folder / "tables.yaml").effective(lake.address(kind))
    owner = owner_settings(policy, open_table(policy.address).description())
    assert owner == OwnerSettings(expire_older_than=9 * DAY, expire_retain_last=5, sweep_older_than=20 * DAY)
    for own, sweep_age, age, count in ((owner, 20, 9, 5), (OwnerSettings(), 7, None, None)):
        log = RunLog(policy, Order(Operation.EXPIRE, "r", lake.reports), owner=own)
        assert sweep_order(log, SweepMode.DELETE, 0).older_than_ms == sweep_age * DAY
        request = expire_order(log, SweepMode.DELETE, 0).request
        assert (request.older_than_ms, request.retain_last) == (None if age is None else age * DAY, count)
    # Neither may a caller be harsher than the owner, nor the owner harsher than a caller.
    for given, expected in ((DAY, 9), (30 * DAY, 30)):
        order = Order(Operation.EXPIRE, "r", lake.reports, removal=RemovalOptions(older_than_ms=given))
        log = RunLog(policy, order, owner=owner)
        assert expire_order(log, SweepMode.DELETE, 0).request.older_than_ms == expected * DAY


def test_a_sweep_leaves_what_the_owner_wants_to_keep(lake: Lake) -> None:
    folder = lake.folder / "warehouse/delta/shop.db/clicks"
    orphan = folder / "part-00000-11111111-2222-4333-8444-555555555555.c000.snappy.parquet"
    shutil.copy(next((SAMPLES / "delta/shop.db/accounts").glob("*.parquet")), orphan)
    old = (datetime.now(UTC) - timedelta(days=10)).timestamp()
    os.utime(orphan, (old, old))
    for said, expected in (({}, 1), ({"nightkeep.sweep.older_than": "20d"}, 0)):
        lake.says("delta", said)
        swept = nightkeep.sweep(lake.address("delta"), reports=lake.reports)
        assert swept.extra["orphans_total"] == expected, swept.reason


def test_documents_have_the_id_that_stays(lake: Lake) -> None:
    ids = {kind: lake.plan(kind).table_id for kind in FORMATS}
    assert ids["paimon"] is None
    catalog = SqlCatalog("lake", uri=f"sqlite:///{lake.folder}/warehouse/iceberg/catalog.db")
    assert ids["iceberg"] == str(catalog.load_table(("shop", "orders")).metadata.table_uuid)
    catalog.close()
    log = sorted((lake.folder / "warehouse/delta/shop.db/clicks/_delta_log").glob("*.json"))[0].read_text()
    assert f'"id":"{ids["delta"]}"' in log
    assert nightkeep.sweep(lake.address("delta"), reports=lake.reports).table_id == ids["delta"]


def test_an_owner_who_states_nothing_holds_nothing_back(lake: Lake) -> None:
    (lake.folder / "tables.yaml").write_text("version: 1\n")
    policy = load(lake.folder / "tables.yaml").effective("delta:/a/b")
    assert owner_settings(policy, TableDescription()) == OwnerSettings()
    with pytest.raises(RefusedTable, match=r"b: its property nightkeep\.pause_ is not known"):
        owner_settings(policy, TableDescription(properties={"nightkeep.pause_": "x"}))
