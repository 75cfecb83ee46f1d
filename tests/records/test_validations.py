"""Old results of Great Expectations go, with their pages; documents, young files and whatever is not ours stay."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.api.test_data_docs import FACTS, document
from tests.drivers.s3_server import Bucket

import nightkeep
from nightkeep.checking.expectations import expect
from nightkeep.errors import UsageError
from nightkeep.nights.value_pages import write_value_pages
from nightkeep.records import RunDocument, load_history, store
from nightkeep.records.row_values import files_of_values, keep_values
from nightkeep.records.validations import forget_pages, forget_results, keep_validations, read_validations
from nightkeep.storage.local.kept import KeptOnDisk

DAY_S, DAY_MS = 24 * 60 * 60, 24 * 60 * 60 * 1000


def aged(path: Path, days: float) -> Path:
    at = time.time() - days * DAY_S
    os.utime(path, (at, at), follow_symlinks=False)
    return path


def kept(reports: Path, run_id: str, days: float, table: str = "shop.orders") -> RunDocument:
    made = keep_validations(replace(document(table), run_id=run_id), [{"success": True}], reports)
    store(made, reports)
    aged(Path(str(made.expectations.docs)), days)
    return made


def test_old_results_go_and_documents_stay(tmp_path: Path) -> None:
    old, new = kept(tmp_path, "old", 91), kept(tmp_path, "new", 89)
    other = kept(tmp_path, "old", 91, "delta:/lake/../a b")
    assert forget_results(tmp_path, older_than_ms=90 * DAY_MS) == 2
    assert [len(read_validations(each, tmp_path)) for each in (old, new, other)] == [0, 1, 0]
    assert len(load_history(tmp_path)) == 3
    assert forget_results(tmp_path, older_than_ms=90 * DAY_MS) == 0


def test_results_go_with_their_documents_unless_they_are_young(tmp_path: Path) -> None:
    old, young = kept(tmp_path, "old", 2), kept(tmp_path, "young", 0.5)
    for each in (old, young):
        (tmp_path / "shop.orders" / f"{each.run_id}-upgrade.json").unlink()
    assert forget_results(tmp_path, older_than_ms=90 * DAY_MS) == 1
    assert (read_validations(old, tmp_path), len(read_validations(young, tmp_path))) == ((), 1)


def test_old_values_of_rows_go_and_so_do_those_without_a_document(tmp_path: Path) -> None:
    named = {"old": 91, "new": 89, "gone": 2}
    for run_id, days in named.items():
        made = keep_values(
            replace(document("shop.orders"), run_id=run_id), tmp_path, validations=({"success": False, "results": []},)
        )
        store(made, tmp_path)
        write_value_pages([made], reports=str(tmp_path), folder=str(tmp_path), now=made.started_at)
        for name in files_of_values(made):
            aged(tmp_path / name, days)
    (tmp_path / "shop.orders" / "gone-upgrade.json").unlink()
    assert forget_results(tmp_path, older_than_ms=90 * DAY_MS) == 4
    left = {
        each.relative_to(tmp_path).as_posix()
        for each in tmp_path.rglob("*")
        if "~values" in each.parts and each.is_file()
    }
    assert left == {"~values/shop.orders/new-upgrade.json", "pages/~values/shop.orders/new-upgrade.html"}


def test_nothing_outside_of_the_place_and_nothing_that_is_not_ours_is_removed(tmp_path: Path) -> None:
    reports, outside = tmp_path / "reports", tmp_path / "outside"
    kept(reports, "old", 100)
    shutil.copytree(reports / "shop.orders" / "expectations", outside / "expectations")
    stays = [aged(each, 100) for each in (outside / "expectations").iterdir()]
    (reports / "linked").symlink_to(outside)
    (reports / "table").mkdir()
    (reports / "table" / "expectations").symlink_to(outside / "expectations")
    (reports / "holds" / "expectations").mkdir(parents=True)
    folder = reports / "shop.orders" / "expectations"
    target = tmp_path / "target.json"
    target.write_text("{}")
    (folder / "link.json").symlink_to(target)
    aged(folder / "link.json", 100)
    (folder / "full.json").mkdir()
    stays += [target, aged(folder / "full.json", 100)]
    for place in ("note.txt", ".hidden.json", "full.json/a", "../../holds/expectations/x.json"):
        (folder / place).write_text("{}")
        stays.append(aged(folder / place, 100))
    aged(folder / "full.json", 100)
    assert forget_results(reports, older_than_ms=90 * DAY_MS) == 2
    assert all(each.exists() for each in stays)
    assert sorted(each.name for each in folder.iterdir()) == [".hidden.json", "full.json", "note.txt"]


def test_a_failure_or_another_machine_in_the_middle_leaves_the_rest_for_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        kept(tmp_path, f"run{number}", 100)
    remove, calls = KeptOnDisk.remove, list[str]()

    def failing(self: KeptOnDisk, name: str, *, read: object) -> bool:
        calls.append(name)
        if len(calls) == 2:
            raise OSError("no answer")
        if len(calls) == 3:
            os.unlink(self.address(name))
        return remove(self, name, read=None)

    monkeypatch.setattr(KeptOnDisk, "remove", failing)
    assert forget_results(tmp_path, older_than_ms=90 * DAY_MS) == 3
    assert forget_results(tmp_path, older_than_ms=90 * DAY_MS) == 1


def test_pages_that_the_index_does_not_list_go(tmp_path: Path) -> None:
    _, validations = expect([FACTS], {})
    made = keep_validations(document(), validations, tmp_path)
    store(made, tmp_path)
    folder = tmp_path / "pages" / "data-docs"
    nightkeep.report(reports=tmp_path, data_docs=True)
    (page,) = (each for each in folder.iterdir() if each.name != "index.html")
    aged(Path(str(made.expectations.docs)), 100)
    for name in ("gone-1.html", "young-1.html", "mine.html"):
        shutil.copy(page, folder / name)
        aged(folder / name, 0.5 if name == "young-1.html" else 2)
    aged(page, 2)
    forget_pages(tmp_path, {page.name.removesuffix(".html")})
    assert {each.name for each in folder.iterdir()} == {page.name, "index.html", "young-1.html", "mine.html"}
    aged(page, 2)
    nightkeep.report(reports=tmp_path, data_docs=True, forget="90d")
    assert read_validations(made, tmp_path) == () and not page.exists()


@pytest.mark.parametrize(("text", "told"), [("23h", "at least 24h"), ("soon", "--forget: expected")])
def test_an_age_that_runs_may_still_write_in_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        nightkeep.report(reports=tmp_path, forget=text)


@pytest.mark.slow
def test_old_results_in_a_bucket_go(s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = f"{s3_bucket.uri}/reports"
    made = keep_validations(document(), [{"success": True}], reports)
    store(made, reports)
    assert forget_results(reports, older_than_ms=DAY_MS) == 0
    later = time.time_ns() + 2 * DAY_S * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later)
    assert forget_results(reports, older_than_ms=90 * DAY_MS) == 0
    assert forget_results(reports, older_than_ms=DAY_MS) == 1
    assert read_validations(made, reports) == () and len(load_history(reports)) == 1
