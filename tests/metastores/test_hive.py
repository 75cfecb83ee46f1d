"""A real Hive metastore as a place where tables are, and as what names them: listed, located, cared for, and down."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import MetaException
from pyiceberg.catalog import load_catalog
from tests.discovery.warehouses import SAMPLES, policy
from tests.drivers.hive_metastore import HiveMetastore
from tests.formats.iceberg.pyiceberg_tables import ROWS
from tests.metastores.metastore_world import DELTA, PAIMON, care_for, copied, hive_table, in_hive

import nightkeep
from nightkeep.admission.order import Order
from nightkeep.api.call_context import find_context
from nightkeep.discovery import completed, find_tables, kept_found, located_all, located_some
from nightkeep.errors import AddressError, PolicyError, Unreachable
from nightkeep.formats import open_table
from nightkeep.limits import LISTED
from nightkeep.metastores import hive, located, locating
from nightkeep.metastores.hive_connections import MetastoreConnections
from nightkeep.model import Address, Operation, Outcome
from nightkeep.nights.run_tables import find_all, run_policy
from nightkeep.policy import load_usable
from nightkeep.records import found_path
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Shop:
    """A metastore with tables of all three formats, and others."""

    uri: str
    folder: Path
    delta: Path
    paimon: Path

    def policy(self, more: str = "") -> Path:
        policy(self.folder, f"version: 1\ndiscover:\n  - {{hive: '{self.uri}', name: 'lake.{{table}}'}}\n{more}")
        return self.folder / "tables.yaml"


@pytest.fixture
def shop(hive_metastore: HiveMetastore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    # Settings of the machine's own catalogs are not asked.
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    delta, paimon = copied(tmp_path)
    tables = {
        "clicks": hive_table("clicks", f"file:{delta}", DELTA),
        "orders": hive_table("orders", f"file:{paimon}", PAIMON),
        "plain": hive_table("plain", f"file:{tmp_path}/plain", {}),
        "seen": hive_table("seen", "", {}, "VIRTUAL_VIEW"),
        "lost": hive_table("lost", "", DELTA),
    }
    with in_hive(hive_metastore.uri, tables):
        theirs = load_catalog("theirs", type="hive", uri=hive_metastore.uri, **{"hive.hive2-compatible": "true"})
        events = theirs.create_table("shop.events", ROWS.schema, location=f"file://{tmp_path}/events")
        for _ in range(4):
            events.append(ROWS)
        yield Shop(hive_metastore.uri, tmp_path, delta, paimon)


def test_tables_of_all_formats_are_found_and_others_are_named(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hive, "PAGE", 2)
    told = nightkeep.tables(policy=shop.policy(), reports=shop.folder / "reports")
    assert [(each.name, each.table) for each in told if each.refused is None] == [
        ("lake.clicks", f"delta:{shop.delta}"),
        ("lake.events", f"iceberg:{shop.uri}/shop.events"),
        ("lake.orders", f"paimon:{shop.paimon}"),
    ]
    place = f"discover hive:{shop.uri}"
    assert [(each.name, each.kind) for each in told.others] == [("lake.plain", "text"), ("lake.seen", "view")]
    assert f"{place}: 2 not ours: lake.plain (text), lake.seen (view)" in str(told)
    (lost,) = [each for each in told if each.refused is not None]
    assert lost.name == f"{place}: shop.lost" and "expected the place of its files, found" in str(lost.refused)
    assert all(each.get("ours", True) for each in told.to_json()[:-2])
    assert [(each["name"], each["ours"]) for each in told.to_json()[-2:]] == [
        ("lake.plain", False),
        ("lake.seen", False),
    ]
    # A catalog of pyiceberg's configuration that asks the same metastore gives Iceberg tables their name.
    for name, value in {"TYPE": "hive", "URI": shop.uri}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__PROD__{name}", value)
    found = find_tables(policy(shop.folder, shop.policy().read_text()).discoveries)
    assert [each.location for each in found.tables if each.format == "iceberg"] == ["prod/shop.events"]


def test_discovered_tables_are_maintained(shop: Shop) -> None:
    for name in ("lake.clicks", "lake.events"):
        covered = shop.policy("patterns: [{match: 'lake.*', verify: touched}]\n")
        done = care_for(name, shop.folder / "reports", covered)
        assert done.outcome is Outcome.VERIFIED, done.reason


def test_a_table_is_maintained_by_its_name(shop: Shop) -> None:
    """Its place is asked for when the run starts, and an entry that names it wins over its discovery."""
    more = f"tables: [{{name: clicks, table: 'delta:{shop.uri}/shop.clicks', check: {{enabled: false}}}}]\n"
    file = shop.policy(more)
    told = nightkeep.tables(policy=file, reports=shop.folder / "reports")
    assert [each.name for each in told if each.refused is None] == ["clicks", "lake.events", "lake.orders"]
    moved = shop.folder / "moved"
    shutil.move(shop.delta, moved)
    with MetastoreConnections({"uri": shop.uri}) as client:
        client.alter_table("shop", "clicks", hive_table("clicks", f"file:{moved}", DELTA))
    # The address, as the policy has it, means the entry.
    place = find_context(file, shop.folder / "reports")
    assert place.chosen(f"delta:{shop.uri}/shop.clicks") == place.chosen("clicks")
    assert place.chosen("clicks").address == Address("delta", str(moved), "clicks")
    done = care_for("clicks", shop.folder / "reports", file)
    assert done.outcome is Outcome.VERIFIED, done.reason


def test_a_table_that_is_dropped_and_made_anew_after_its_plan_is_not_published(shop: Shop) -> None:
    """The new one has the name, the folder, and more versions than the one that was planned."""
    chosen = find_context(None, shop.folder / "reports").chosen(f"delta:{shop.uri}/shop.clicks")
    log, another = shop.delta / "_delta_log", SAMPLES / "delta/shop.db/readings/_delta_log"

    def overtaken(work: Callable[[T], R], items: Sequence[T], *, label: str) -> list[R]:
        done = inline(work, items, label=label)
        if log.exists():
            shutil.rmtree(log)
        shutil.copytree(another, log)
        return done

    done = run_operation(
        chosen, Order(Operation.OPTIMIZE, "night", str(shop.folder / "reports")), mapper=lambda: overtaken
    )
    assert done.outcome is Outcome.CONFLICTED, done.reason
    assert sorted(each.name for each in log.iterdir()) == sorted(each.name for each in another.iterdir())


def test_a_night_locates_and_finds_its_tables_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a DAG does it: the first task asks, and what it was told holds for the run."""
    reports = str(shop.folder / "reports")
    tables = f"tables: [{{name: clicks, table: 'delta:{shop.uri}/shop.clicks', operations: [optimize]}}]\n"
    file = shop.policy(f"{tables}patterns: [{{match: '*', check: {{enabled: false}}}}]\n")
    first = find_all(str(file), reports, "night")
    assert [each.name for each in first.tables] == ["clicks", "lake.events", "lake.orders"]
    assert [each.name for each in run_policy(str(file), reports, "night").tables] == [
        "clicks",
        "lake.events",
        "lake.orders",
    ]
    # A job asks the metastore for nothing that the first task was told.
    monkeypatch.delattr(hive, "entry")
    of_job = located_some(completed(load_usable(file), kept_found(found_path(reports, "night"))), ["clicks"])
    assert of_job.effective("clicks").address == Address("delta", str(shop.delta), "clicks")
    assert of_job.effective("lake.events").address.location == f"{shop.uri}/shop.events"


def test_names_that_mean_no_table_are_reported(shop: Shop) -> None:
    with pytest.raises(AddressError, match=r"shop\.gone: expected a table, found none of that name in thrift://"):
        located(Address("delta", f"{shop.uri}/shop.gone", "gone"))
    with pytest.raises(AddressError, match="expected a table of paimon, found one of delta"):
        located(Address("paimon", f"{shop.uri}/shop.clicks", "clicks"))
    with pytest.raises(AddressError, match="expected a table of delta, found view"):
        located(Address("delta", f"{shop.uri}/shop.seen", "seen"))
    with pytest.raises(AddressError, match="expected the place of its files, found 'file:/nowhere/lost-__PLACEHOLDER"):
        located(Address("delta", f"{shop.uri}/shop.lost", "lost"))
    branch = located(Address("paimon", f"{shop.uri}/shop.orders$branch_dev", "orders"))
    assert branch == Address("paimon", f"{shop.paimon}$branch_dev", "orders")


def test_a_metastore_that_is_down_costs_no_other_table_its_night(shop: Shop, capfd: pytest.CaptureFixture[str]) -> None:
    down = "thrift://127.0.0.1:1"
    text = (
        f"version: 1\ndiscover: [{{hive: '{down}'}}, {{hive: '{shop.uri}'}}]\n"
        f"tables: [{{name: one, table: 'delta:{down}/shop.one'}}, {{name: two, table: 'delta:{shop.delta}'}}]\n"
    )
    loaded = policy(shop.folder, text)
    whole = completed(located_all(loaded), find_tables(loaded.discoveries))
    assert [each.name for each in whole.tables] == ["one", "two", "shop.events", "shop.orders"]
    faults = {each.name: each.fault for each in whole.unusable}
    assert sorted(faults) == [f"discover hive:{down}", f"discover hive:{shop.uri}: shop.lost"]
    assert f"discover hive:{down}: cannot be listed: no metastore answers" in faults[f"discover hive:{down}"]
    for name in ("one", f"delta:{down}/shop.one", f"delta:{down}/shop.other"):
        told = care_for(name, shop.folder / "reports", shop.folder / "tables.yaml")
        assert told.outcome is Outcome.FAILED and str(told.reason).endswith(
            f"expected an answer of {down}, found no metastore answers: Connection refused"
        )
    assert care_for("two", shop.folder / "reports", shop.folder / "tables.yaml").outcome is Outcome.VERIFIED
    assert not capfd.readouterr().err


def test_a_name_without_a_table_is_a_fault_of_the_policy(shop: Shop) -> None:
    loaded = policy(shop.folder, f"version: 1\ntables: [{{name: one, table: 'delta:{shop.uri}/shop.gone'}}]\n")
    for name in ("one", f"delta:{shop.uri}/shop.gone", f"paimon:{shop.uri}/shop.gone"):
        with pytest.raises(PolicyError, match=r"shop\.gone: expected a table, found none of that name in thrift"):
            located_some(loaded, [name]).effective(name)


def test_a_silent_metastore_is_not_waited_for_by_each_table(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    down = Address("delta", "thrift://127.0.0.1:2/shop.one", "one")
    with pytest.raises(Unreachable):
        located(down)
    with monkeypatch.context() as unasked:
        unasked.delattr(hive, "entry")
        with pytest.raises(Unreachable, match="no metastore answers: Connection refused"):
            located(down)
    monkeypatch.setattr(locating, "SILENT_SECONDS", 0)
    with pytest.raises(Unreachable):
        located(down)
    # What answers only after the run began has no place in this run.
    with pytest.raises(Unreachable, match="expected a place since the run began, found it only now; run again"):
        open_table(Address("delta", f"{shop.uri}/shop.clicks", "clicks"))


def test_a_database_that_cannot_be_listed_costs_no_other_its_tables(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Client.get_all_tables

    def tables(client: Client, database: str) -> list[str]:
        if database == "default":
            raise MetaException("not yours")
        return list(answer(client, database))

    monkeypatch.setattr(Client, "get_all_tables", tables)
    found = find_tables(policy(shop.folder, shop.policy().read_text()).discoveries)
    assert len(found.tables) == 3
    assert any(each.why.endswith("default: cannot be listed: not yours") for each in found.unlistable)


def test_a_metastore_with_more_names_than_the_limit_ends_and_reports_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as limited:
        limited.setenv(LISTED.variable, "4")
        found = find_tables(policy(shop.folder, shop.policy().read_text()).discoveries)
    assert not found.tables and "Length exceeded max allowed: 4" in found.unlistable[0].why
