"""Small files that several writers change: the same promises on a disk, in a bucket and in HDFS."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from tests.drivers.s3_server import Bucket
from tests.support.faulty_hdfs import FaultyHdfs, Trouble

from nightkeep.places import report_store
from nightkeep.storage.hdfs import client as hdfs_client
from nightkeep.storage.hdfs import kept as hdfs_kept
from nightkeep.storage.hdfs import store as hdfs
from nightkeep.storage.hdfs.store import HdfsStorage
from nightkeep.storage.kept import KeptFile, KeptFiles


@pytest.fixture
def bucket_place(s3_bucket: Bucket) -> str:
    return f"{s3_bucket.uri}/team a/reports"


@pytest.fixture(
    params=[
        "folder",
        pytest.param("bucket", marks=pytest.mark.slow),
        pytest.param("container", marks=[pytest.mark.slow, pytest.mark.extended]),
        pytest.param("google", marks=[pytest.mark.slow, pytest.mark.extended]),
        pytest.param("hdfs", marks=pytest.mark.slow),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "reports")
    if request.param == "container":
        return f"{request.getfixturevalue('azure_container').uri}/team a/reports"
    if request.param == "google":
        return f"{request.getfixturevalue('google_bucket').uri}/team a/reports"
    if request.param == "hdfs":
        return f"{request.getfixturevalue('hdfs_folder')}/team a/reports"
    found: str = request.getfixturevalue("bucket_place")
    return found


@pytest.fixture
def kept(place: str) -> KeptFiles:
    return report_store(place)


def names(kept: KeptFiles, folder: str) -> list[str]:
    """Folders are among them on a disk: one may stand where a document should be."""
    return [each.name for each in kept.list(folder) if each.name != "deep"]


def test_a_file_is_written_read_replaced_listed_and_removed(kept: KeptFiles) -> None:
    assert not kept.exists() and kept.folders() == () and names(kept, "t") == []
    with pytest.raises(FileNotFoundError):
        kept.read("t/a.json")
    kept.write("t/b.json", b"1")
    kept.write("t/a.json", b"")
    kept.write("t/deep/c.json", b"3")
    kept.write("u/d.json", b"4")
    kept.write("t/b.json", b"2")
    assert (kept.read("t/b.json").data, kept.read("t/a.json").data) == (b"2", b"")
    assert (kept.exists(), [*kept.folders()], names(kept, "t")) == (True, ["t", "u"], ["a.json", "b.json"])
    assert all(each.modified_ns > 1_700_000_000 * 10**9 for each in kept.list("t"))
    assert kept.remove("t/b.json", read=None) and kept.remove("t/b.json", read=None)
    assert names(kept, "t") == ["a.json"]


def test_a_change_is_of_what_was_read(kept: KeptFiles) -> None:
    assert kept.swap("t/a", b"1", read=None)
    assert not kept.swap("t/a", b"2", read=None)
    one = kept.read("t/a")
    assert kept.swap("t/a", b"2", read=one)
    assert not kept.swap("t/a", b"3", read=one) and not kept.remove("t/a", read=one)
    assert kept.read("t/a").data == b"2"
    two = kept.read("t/a")
    assert kept.remove("t/a", read=two)
    with pytest.raises(FileNotFoundError):
        kept.read("t/a")
    assert not kept.swap("t/a", b"4", read=two)
    assert kept.swap("t/a", b"5", read=None) and kept.read("t/a").data == b"5"


def test_of_a_hundred_that_change_the_same_content_one_wins(kept: KeptFiles) -> None:
    """And of a hundred that create a file; whoever loses is told so."""
    start = threading.Barrier(100)

    def change(number: int, name: str, read: KeptFile | None) -> bool:
        start.wait()
        return kept.swap(name, str(number).encode(), read=read)

    kept.write("t/a", b"base")
    for name, read in (("t/new", None), ("t/a", kept.read("t/a"))):
        with ThreadPoolExecutor(100) as pool:
            changed = [*pool.map(partial(change, name=name, read=read), range(100))]
        assert changed.count(True) == 1
        assert kept.read(name).data == str(changed.index(True)).encode()
    assert names(kept, "t") == ["a", "new"]


def test_a_stand_in_never_replaces(kept: KeptFiles) -> None:
    kept.write("a", b"1")
    kept.write("b", b"2")
    assert kept.swap("c", b"3", read=None) and kept.remove("c", read=kept.read("c"))
    assert kept.swap("d", b"4", read=None)
    for taken in ("b", "d"):
        with pytest.raises(FileExistsError):
            kept.stand_in("a", taken)
    kept.stand_in("a", "c")
    kept.stand_in("a", "e")
    assert [kept.read(name).data for name in "bcde"] == [b"2", b"1", b"4", b"1"]


def test_a_stream_that_breaks_leaves_what_was_there(kept: KeptFiles) -> None:
    with kept.write_stream("t/large") as sink:
        sink.write(b"x" * 100)
        sink.write(b"y")
    with pytest.raises(KeyboardInterrupt), kept.write_stream("t/large") as sink:
        sink.write(b"z")
        raise KeyboardInterrupt
    assert kept.read("t/large").data == b"x" * 100 + b"y" and names(kept, "t") == ["large"]


@pytest.mark.slow
class TestInHdfs:
    """A file that is changed on a condition is a folder of versions there."""

    def test_replaced_versions_go_once_no_change_of_them_can_come(
        self, hdfs_folder: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept, versions = report_store(f"{hdfs_folder}/reports"), HdfsStorage(f"{hdfs_folder}/reports/a.versions")
        for number in range(5):
            assert kept.swap("a", str(number).encode(), read=kept.read("a") if number else None)
        assert len(versions.list("")) == 5
        monkeypatch.setattr(hdfs_kept, "_KEPT_MS", 0)
        time.sleep(0.01)
        assert kept.swap("a", b"5", read=kept.read("a"))
        # The one before was replaced at the very time of the newest.
        assert [int(file.name) for file in versions.list("")] == [5, 6]
        assert kept.read("a").data == b"5"

    def test_a_writer_that_was_stopped_for_long_changes_nothing(
        self, hdfs_folder: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept = report_store(f"{hdfs_folder}/reports")
        assert kept.swap("a", b"1", read=None)
        read = kept.read("a")
        monkeypatch.setattr(hdfs_kept, "_CHANGE_SECONDS", 0.0)
        with pytest.raises(OSError, match="took too long"):
            kept.swap("a", b"2", read=read)
        assert kept.read("a").data == b"1" and names(kept, "") == ["a"]

    def test_what_is_written_whatever_it_holds_is_the_newest(self, hdfs_folder: str) -> None:
        kept = report_store(f"{hdfs_folder}/reports")
        kept.write("a", b"1")
        plain = kept.read("a")
        assert not kept.swap("a", b"2", read=None) and kept.swap("a", b"2", read=plain)
        assert not kept.swap("a", b"3", read=plain)
        kept.write("a", b"4")
        assert kept.read("a").data == b"4"
        assert kept.remove("a", read=None) and names(kept, "") == []
        with pytest.raises(FileNotFoundError):
            kept.read("a")

    @pytest.mark.few(1)
    @pytest.mark.parametrize("trouble", [Trouble.BEFORE, Trouble.AFTER, Trouble.TWICE])
    def test_each_call_of_a_change_may_fail_or_be_made_twice(
        self, hdfs_folder: str, monkeypatch: pytest.MonkeyPatch, trouble: Trouble
    ) -> None:
        kept = report_store(f"{hdfs_folder}/reports")
        assert kept.swap("t/a", b"0", read=None)
        at, is_done = 0, False
        while not is_done:
            at += 1
            before, data = kept.read("t/a"), str(at).encode()
            faulty = FaultyHdfs(hdfs_client.client, trouble, at)
            with monkeypatch.context() as patched:
                patched.setattr(hdfs, "client", faulty)
                with suppress(OSError):
                    assert kept.swap("t/a", data, read=before)
                    is_done = len(faulty.passed) < at
                    assert kept.read("t/a").data == data
            assert kept.read("t/a").data in (before.data, data) and names(kept, "t") == ["a"]
        assert at > 4
