"""Places that a policy names -> whether each answers, asked side by side, each within a bound. Opens no table.

Of a place of `discover`, its list is read up to the first table. Of tables that are listed by their addresses, each
catalog, bucket and namenode is asked once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from nightkeep.causes import failure_text
from nightkeep.discovery import ask_place
from nightkeep.errors import NightkeepError
from nightkeep.limits import PATIENCE
from nightkeep.places import report_store
from nightkeep.policy import PolicyFile
from nightkeep.readiness.finding import Concern, Finding, Readiness
from nightkeep.readiness.reports_side import acting_as
from nightkeep.storage.hdfs.names import SCHEME as HDFS

_MORE_SECONDS: Final = 5.0
"""What a client needs beside its own wait, to connect and to report."""
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Place:
    """What is asked: `ask` returns why it does not answer, None if it does. `is_store`: a bucket or a namenode."""

    name: str
    ask: Callable[[], str | None]
    is_store: bool = False


def find_places(policy: PolicyFile, *, writes: bool) -> tuple[Finding, ...]:
    """A row for each place. With `writes`, a bucket of tables is also asked to create the same object twice, as a
    commit depends on its answer."""
    places = [*_of_discover(policy), *_of_tables(policy, writes=writes)]
    return tuple(map(_row, places, answers([each.ask for each in places], seconds=PATIENCE.value + _MORE_SECONDS)))


def schemes_of(policy: PolicyFile) -> tuple[str, ...]:
    """The schemes of the addresses that a policy names."""
    locations = [*(each.location for each in policy.discoveries), *(each.address.location for each in policy.tables)]
    return tuple(dict.fromkeys(scheme for each in locations if (scheme := urlsplit(each).scheme)))


def answers(asks: list[Callable[[], str | None]], *, seconds: float) -> list[str | None]:
    """What each returned; a sentence for one that took longer than `seconds`, or that raised.

    Threads that do not end are left behind: they hold no lock and do not keep the process.
    """
    found: list[str | None] = [f"no answer within {seconds:.0f} seconds ({PATIENCE.variable})"] * len(asks)
    free = threading.Semaphore(_AT_ONCE)

    def ask(place: int) -> None:
        with free:
            found[place] = _why(asks[place])

    threads = [
        threading.Thread(target=ask, args=(i,), name=f"nightkeep-ask-{i}", daemon=True) for i in range(len(asks))
    ]
    rounds = -(-len(asks) // _AT_ONCE)
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds * rounds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return list(found)


def _why(ask: Callable[[], str | None]) -> str | None:
    try:
        return ask()
    except (NightkeepError, OSError) as failure:
        return str(failure) or failure_text(failure)


def _of_discover(policy: PolicyFile) -> Iterator[Place]:
    for discovery in policy.discoveries:
        yield Place(discovery.name, partial(ask_place, discovery.name, discovery.kind, discovery.location))


def _of_tables(policy: PolicyFile, *, writes: bool) -> Iterator[Place]:
    asked = dict[str, Place]()
    for table in policy.tables:
        location, kind = table.address.location, table.address.format
        parts = urlsplit(location)
        if kind == "iceberg":
            catalog = location.partition("/")[0]
            name = f"catalog {catalog}"
            asked.setdefault(name, Place(name, partial(ask_place, name, kind, catalog)))
        elif parts.scheme and parts.netloc and parts.scheme not in ("file", "thrift", "glue"):
            name = f"{parts.scheme}://{parts.netloc}"
            asked.setdefault(name, Place(name, partial(_ask_store, location, writes), is_store=True))
    yield from asked.values()


def _ask_store(location: str, writes: bool) -> str | None:  # noqa: FBT001 -- bound by its place
    """Any list counts as an answer, an empty one too: a table that is not there fails by its own name."""
    store = report_store(location)
    store.list("")
    if writes and not location.startswith(HDFS):
        from nightkeep.storage.exclusive import require_exclusive_create  # noqa: PLC0415 -- clients of buckets
        from nightkeep.storage.objects.store import ObjectStorage  # noqa: PLC0415 -- clients of buckets

        require_exclusive_create(ObjectStorage(store.root))
    return None


def _row(place: Place, why: str | None) -> Finding:
    store = f", as {acting_as(place.name)}" if place.is_store else ""
    return Finding(
        check="place",
        status=Readiness.PASSED if why is None else Readiness.FAILED,
        subject=place.name,
        expected="an answer",
        found="one" if why is None else f"{why}{store}",
        remedy=None if why is None else "its tables fail by name until it answers; the others are worked on",
        concerns=Concern.TABLES,
        may_pass=True,
    )
