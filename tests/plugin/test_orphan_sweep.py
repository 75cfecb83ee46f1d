"""The weekly DAG over the samples, as it runs every Sunday: tables of real engines, real jobs, planted leftovers."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from samples.iceberg_places import place
from samples.leftovers import YOUNG, Leftover, plant
from tests.discovery.warehouses import DELTA, ICEBERG, PAIMON
from tests.support.airflow_home import ROOT, Airflow, airflow_home, finished, with_database

from nightkeep.records import RunDocument, load_history

pytestmark = pytest.mark.extended

TABLES = {
    "paimon/shop.db/orders": "shop.orders",
    "delta/shop.db/clicks": "lake.clicks",
    "iceberg/shop/orders": "stream.orders",
}
AGES = {12: "7 to 30 days", 45: "30 to 90 days", 100: "90 days or more"}


@dataclass(frozen=True, slots=True)
class Week:
    """What was there before, and what a run of the DAG said and did."""

    warehouse: Path
    before: dict[Path, bytes]
    planted: dict[Path, Leftover]
    documents: dict[tuple[str, str], RunDocument]
    outcomes: dict[str, str]
    unchanged: str
    page: str
    log: str

    def old(self, table: str) -> dict[Path, Leftover]:
        return {path: each for path, each in self.planted.items() if TABLES[each.table] == table and each.days > YOUNG}


@pytest.fixture(scope="module")
def airflow(airflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Airflow:
    """Of the policy and the jobs that are delivered."""
    scripted = with_database(airflow_home(tmp_path_factory.mktemp("week"), ()), airflow_database)
    (scripted.home / "jobs/calls.jsonl").touch()
    warehouse = scripted.home / "warehouse"
    ours = {
        "NIGHTKEEP_POLICY": str(ROOT / "dags/tables.yaml"),
        "NIGHTKEEP_JOBS": str(ROOT / "jobs"),
        "NIGHTKEEP_WAREHOUSE": str(warehouse),
        "PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{warehouse}/iceberg/catalog.db",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "GX_ANALYTICS_ENABLED": "false",
    }
    return replace(scripted, environ={**scripted.environ, **ours})


@pytest.fixture(scope="module")
def week(airflow: Airflow) -> Week:
    home, warehouse = airflow.home, airflow.home / "warehouse"
    for name in ("paimon", "delta"):
        shutil.copytree(ROOT / "samples" / name, warehouse / name)
    place(ROOT / "samples/iceberg", warehouse / "iceberg")
    planted = plant(warehouse, time.time())
    before = {path: path.read_bytes() for path in warehouse.rglob("*") if path.is_file()}
    done = airflow.call("airflow", "dags", "test", "orphan_sweep", "2026-11-22")
    run = finished(airflow, "orphan_sweep", done.stdout + done.stderr)
    documents = load_history(str(home / "reports"))
    return Week(
        warehouse=warehouse,
        before=before,
        planted=planted,
        documents={(d.table, d.operation): d for d in documents},
        outcomes={str(key): state for (task, key), (state, _) in run.tasks.items() if task == "swept"},
        unchanged=run.tasks["unchanged", -1][0],
        page=next((home / "reports/pages").glob("orphan_sweep-*.html")).read_text().replace("<wbr>", ""),
        log=run.log,
    )


def test_every_table_has_its_documents_and_its_outcome(week: Week) -> None:
    names = [f"shop.{name}" for name in PAIMON] + [f"lake.{name}" for name in DELTA]
    names += [f"stream.{name}" for name in ICEBERG]
    assert set(week.documents) == {(name, operation) for name in names for operation in ("expire", "sweep")}, week.log
    swept = {name: str(week.documents[name, "sweep"].outcome) for name in names}
    assert {name for name, outcome in swept.items() if outcome == "verified"} == set(TABLES.values()), swept
    states = {"verified": "success", "unchanged": "success", "refused": "skipped", "skipped": "skipped"}
    worst = {name: (str(week.documents[name, "expire"].outcome), swept[name]) for name in names}
    # Those with nothing to do have one task together.
    idle = {name for name, both in worst.items() if set(both) == {"unchanged"}}
    assert week.outcomes == {
        name: "skipped" if "refused" in both else states[both[1]] for name, both in worst.items() if name not in idle
    }, worst
    assert (week.unchanged, bool(idle)) == ("success", True)


@pytest.mark.parametrize("table", TABLES.values())
def test_what_killed_writers_left_is_found_by_kind_and_age(week: Week, table: str) -> None:
    found, planted = week.documents[table, "sweep"].extra, week.old(table)
    assert found["mode"] == "quarantine"
    orphans = found["orphans"]
    assert isinstance(orphans, list)
    assert {each["path"]: each["kind"] for each in orphans} == {str(path): each.kind for path, each in planted.items()}
    sizes = {path: len(week.before[path]) for path in planted}
    assert (found["orphans_total"], found["orphans_bytes"]) == (len(planted), sum(sizes.values()))
    for key, groups in (
        ("by_kind", [e.kind for e in planted.values()]),
        ("by_age", [AGES[e.days] for e in planted.values()]),
    ):
        assert found[key] == {
            group: {
                "files": groups.count(group),
                "bytes": sum(size for size, other in zip(sizes.values(), groups, strict=True) if other == group),
            }
            for group in groups
        }


METADATA = ("snapshot", "manifest", "index", "metadata")


def test_nothing_else_has_moved_and_what_has_is_kept(week: Week) -> None:
    after = {path: path.read_bytes() for path in week.warehouse.rglob("*") if path.is_file()}
    gone = {path for table in TABLES.values() for path in week.old(table)}
    stay = {path for path in week.before if path not in gone and path.name != "catalog.db"}
    lost = {path for path in stay if after.get(path) != week.before[path]}
    # Of tables with versions that are older, or more, than what is kept, metadata has expired, and no data.
    expired = {name.partition(".")[2] for (name, _), each in week.documents.items() if each.extra.get("expired")}
    metadata = {path for path in lost if path.parent.name in METADATA and expired & {*path.parts}}
    assert lost - metadata == set()
    assert gone & after.keys() == set()
    quarantined = [after[path] for path in after.keys() - week.before.keys() if path.suffix == ".file"]
    assert sorted(quarantined) == sorted(week.before[path] for path in gone)


def test_the_page_shows_orphans_by_kind_by_age_and_how_to_bring_them_back(week: Week) -> None:
    for table in TABLES.values():
        run_id = week.documents[table, "sweep"].run_id
        assert f"nightkeep restore {table} {run_id}" in week.page
        for each in week.old(table).values():
            assert f">{each.kind}</th>" in week.page
            assert f">{AGES[each.days]}</th>" in week.page
            assert each.name in week.page
    assert f"{sum(len(week.old(table)) for table in TABLES.values())} orphan files, " in week.page
    assert not [each.name for each in week.planted.values() if each.days == YOUNG and each.name in week.page]


def test_readers_see_what_they_saw(week: Week) -> None:
    for table in TABLES.values():
        document = week.documents[table, "sweep"]
        assert document.expectations.status == "passed", json.dumps(document.to_json(), indent=2)
        assert document.units and all(unit.equal for unit in document.units)
