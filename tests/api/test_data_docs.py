"""Data Docs: Great Expectations' pages of the results that were kept, made and read without any network."""

from __future__ import annotations

import json
import re
import socket
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pytest

import nightkeep
from nightkeep.checking.asked_rows import _errored
from nightkeep.checking.data_docs import offline
from nightkeep.checking.expectations import FactRow, expect
from nightkeep.errors import CorruptMetadata
from nightkeep.model import Operation, Outcome
from nightkeep.model.own_expectations import OwnExpectation
from nightkeep.records import CheckStatus, Expectations, RunDocument, store
from nightkeep.records.validations import keep_validations, read_validations

NIGHT = datetime(2026, 11, 21, 2, 0, 4, tzinfo=UTC)
FACTS = FactRow("day=1", "published", base_rows=41, candidate_rows=42, missing=0)
_LOADED = re.compile(
    r"<(?:script|link|img|iframe|object|embed)\b|url\(|@import|\bsrc=|https?:|\son[a-z]+=", re.IGNORECASE
)


def document(table: str = "shop.orders") -> RunDocument:
    return RunDocument(
        run_id="night",
        table=table,
        format="paimon",
        operation=Operation.UPGRADE,
        outcome=Outcome.VERIFIED,
        committed_version=7,
        started_at=NIGHT,
        finished_at=NIGHT,
        expectations=Expectations(CheckStatus.PASSED),
    )


def test_pages_hold_the_results_and_load_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, (facts,) = expect([FACTS], {})
    broken = OwnExpectation("expect_column_values_to_be_of_type", {"column": "amount"})
    own = {**facts, "suite_name": "policy", "results": [dict(_errored(broken, "no type <given>").result)]}
    for table in ("shop.orders", "delta:/lake/a b", "plain"):
        made = document(table)
        store(made if table == "plain" else keep_validations(made, [facts, own], tmp_path), tmp_path)

    def refused(*_: object) -> None:
        raise AssertionError("network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    pages = nightkeep.report(reports=tmp_path, data_docs=True)
    folder = tmp_path / "pages" / "data-docs"
    assert pages.data_docs == folder / "index.html" and len([*folder.iterdir()]) == 5
    for page in folder.iterdir():
        html = page.read_text()
        assert not _LOADED.search(html) and "default-src 'none'" in html, page
        links = re.findall('href="([^"#]+)"', html)
        assert all((folder / unquote(link)).is_file() for link in links) and links
        back = {unquote(link).split("/")[1] for link in links if link.startswith("../")}
        assert back == ({"index.html"} if page.name == "index.html" else {"index.html", "night.html", "tables"})
    index = (folder / "index.html").read_text()
    listed = set(re.findall(r'<li><a href="([^"]+)"', index))
    assert {unquote(link) for link in listed} == {page.name for page in folder.iterdir()} - {"index.html"}
    assert 'href="data-docs/index.html"' in Path(pages.index).read_text()
    assert index.count("<li>") == 4 and "shop.orders" in index and "not passed" in index
    first, second = (sorted(folder.glob(f"shop.orders*{n}.html"))[0].read_text() for n in (1, 2))
    assert "the number of rows is the same" in first and "day=1" in first and "night" in first
    assert "expect_column_values_to_be_of_type" in second and "no type" in second
    linked = pages.runs[0].read_text()
    (href,) = set(re.findall(r'href="(data-docs/shop[^"]+)"', linked))
    assert (tmp_path / "pages" / href).is_file()
    assert nightkeep.report(reports=tmp_path).data_docs is None
    assert href in pages.runs[0].read_text()


def test_a_traceback_is_shown_as_its_sentence(tmp_path: Path) -> None:
    _, (facts,) = expect([FACTS], {})
    trace = "Traceback (most recent call last):\n  File 'f', line 1\n    f()\n    ^^^\nKeyError: 'amount'\n"
    raised = {"raised_exception": True, "exception_message": f"failed:\n{trace}", "exception_traceback": trace}
    first, *_ = facts["results"]
    broken = [{**first, "success": False, "exception_info": info} for info in (raised, {"metric": raised})]
    store(keep_validations(document(), [{**facts, "results": broken}], tmp_path), tmp_path)
    pages = nightkeep.report(reports=tmp_path, data_docs=True)
    assert pages.data_docs is not None
    for page in pages.data_docs.parent.glob("shop*"):
        html = page.read_text()
        assert "KeyError" in html and "^^^" not in html and "most recent call" not in html


def test_without_results_there_is_an_empty_index(tmp_path: Path) -> None:
    store(document(), tmp_path)
    pages = nightkeep.report(reports=tmp_path, data_docs=True)
    assert pages.data_docs is not None and "No run has left results" in pages.data_docs.read_text()


def test_results_are_kept_beside_the_document(tmp_path: Path) -> None:
    validation = {"success": False, "results": [{"result": {"unexpected_percent": float("nan")}}]}
    kept = keep_validations(document(), [validation], tmp_path)
    assert kept.expectations.docs == str(tmp_path / "shop.orders" / "expectations" / "night-upgrade.json")
    assert json.loads(Path(kept.expectations.docs).read_text())[0]["results"] == [
        {"result": {"unexpected_percent": None}}
    ]
    assert read_validations(kept, tmp_path) == ({**validation, "results": [{"result": {"unexpected_percent": None}}]},)
    assert keep_validations(document(), [], tmp_path).expectations.docs is None
    assert read_validations(replace(document(), run_id="other"), tmp_path) == ()
    assert nightkeep.history(reports=tmp_path).unreadable == ()
    Path(kept.expectations.docs).write_text("{}")
    with pytest.raises(CorruptMetadata, match="a list of validations"):
        read_validations(kept, tmp_path)


def test_results_that_cannot_be_written_are_reported(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    told = keep_validations(document(), [{"success": True}], tmp_path / "taken")
    assert told.expectations.docs is None and "cannot be written" in str(told.expectations.reason)
    assert told.outcome is Outcome.VERIFIED


def test_whatever_a_page_would_load_is_taken_out() -> None:
    html = (
        '<head><link rel="x" href="https://h/a.css"><style>@import "b"; p{background:url(https://h/c.png)}</style>'
        '<script src="https://h/d.js"></script></head><body><img src="https://h/e.png"><a href="https://h">text</a>'
        '<p onclick="go()">rest</p></body>'
    )
    clean = offline(html, "<t>")
    assert not _LOADED.search(clean) and "text" in clean and "rest" in clean
