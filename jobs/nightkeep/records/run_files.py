"""What runs of long ago left beside their documents: pages, marks of messages, found tables, spent budgets -> removed.

Whether a run still has documents is known from their names, as the name of a document begins with that of its run. A
page is removed only if it is one of ours, as a team may keep its own in the same folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.model.receivers import EventKind
from nightkeep.records.file_names import FOUND, PAGES, SENT, SPENT, slug
from nightkeep.records.json_files import side_by_side
from nightkeep.records.sent_marks import read_mark
from nightkeep.records.validations import is_own_folder
from nightkeep.storage.kept import KeptFiles, ListedKept

_OURS: Final = b'<p class="brand">Nightkeep</p>'
_OF_TABLE: Final = slug(":")
"""What follows on the name of a run in that of a document: a run id is `run:table`."""
_CUT: Final = "~~"
"""What follows on a name that was cut, as `file_names.slug` describes it."""


def remove_run_files(store: KeptFiles, documents: Iterable[str], *, older_than: datetime, holds_stand: bool) -> int:
    """Remove what runs left that have none of these documents, by name without a folder, and that is older. Returns how
    many files. `holds_stand`: messages of holds may still be due once. Raises OSError if a folder cannot be listed."""
    old = partial(_old, store, older_than=older_than)
    names = old(SPENT, ".json") + old(FOUND, ".json")
    done = sum(side_by_side(store, partial(remove_file_of_run, store), names))
    runs = RunNames.of(documents)
    pages = [name for name in old(PAGES, ".html") if not runs.has(name.rpartition("/")[2].removesuffix(".html"))]
    done += sum(side_by_side(store, partial(_page_removed, store), pages))
    mark_removed = partial(_mark_removed, store, older_than=older_than, holds_stand=holds_stand)
    return done + sum(side_by_side(store, mark_removed, old(SENT, ".json")))


def is_older(listed: ListedKept, limit: datetime) -> bool:
    """Whether a file was written before this time."""
    return listed.modified_ns < limit.timestamp() * 1e9


def remove_file_of_run(store: KeptFiles, name: str) -> bool:
    """Remove a file that one run alone has written. False if that does not work now."""
    with suppress(OSError):
        return store.remove(name, read=None)
    return False


@dataclass(frozen=True, slots=True)
class RunNames:
    """The names of runs that have documents, as pages are named; `cut`: beginnings of names that were cut."""

    names: frozenset[str]
    cut: tuple[str, ...]

    @staticmethod
    def of(documents: Iterable[str]) -> RunNames:
        """Of names such as `nightly-1~3ashop.orders-optimize.json`."""
        names, cut = set[str](), set[str]()
        for document in documents:
            head, is_cut, _ = document.removesuffix(".json").partition(_CUT)
            if is_cut:
                cut.add(head)
                continue
            names.update(_beginnings(head))
        return RunNames(frozenset(names), tuple(cut))

    def has(self, page: str) -> bool:
        """Whether a run of this page may have documents. In doubt it may."""
        head, is_cut, _ = page.partition(_CUT)
        if any(each.startswith(head) or head.startswith(each) for each in self.cut):
            return True
        return any(name.startswith(head) for name in self.names) if is_cut else page in self.names


def _beginnings(document: str) -> Iterator[str]:
    """What the run of a document may be called. The operation behind its last parts has hyphens too."""
    parts = document.split("-")
    yield from ("-".join(parts[:count]) for count in range(1, len(parts)))
    place = document.find(_OF_TABLE)
    while place >= 0:
        yield document[:place]
        place = document.find(_OF_TABLE, place + 1)


def _old(store: KeptFiles, folder: str, ending: str, *, older_than: datetime) -> list[str]:
    if not is_own_folder(store, folder):
        return []
    files = (each for each in store.list(folder) if each.name.endswith(ending) and not each.name.startswith("."))
    return [f"{folder}/{each.name}" for each in files if is_older(each, older_than)]


def _page_removed(store: KeptFiles, name: str) -> bool:
    with suppress(OSError, ValueError):
        kept = store.read(name)
        return _OURS in kept.data and store.discard(name, read=kept)
    return False


def _mark_removed(store: KeptFiles, name: str, *, older_than: datetime, holds_stand: bool) -> bool:
    """Remove the mark of a message that was sent. One without an end states that nobody knows whether it arrived."""
    with suppress(OSError, CorruptMetadata):
        mark, kept = read_mark(store, name)
        may_be_due = holds_stand and mark.event.startswith(f"{EventKind.HOLD} ")
        is_over = mark.ended is not None and mark.begun_at < older_than and not may_be_due
        return is_over and store.discard(name, read=kept)
    return False
