"""Places of a policy -> the tables that are there now. A place that cannot be listed costs no other its tables."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

from nightkeep.causes import failure_text
from nightkeep.discovery.found import Found, FoundOther, FoundTable, Unlistable
from nightkeep.errors import DEBUG, NightkeepError
from nightkeep.model.listed_tables import ListedTable, OtherTable, UnlistedPlace
from nightkeep.policy import Discovery

_LISTED_BY: Final = {
    **{name: f"nightkeep.formats.{name}.listing" for name in ("delta", "iceberg", "paimon")},
    **dict.fromkeys(("hive", "glue"), "nightkeep.metastores.listing"),
}

_log = logging.getLogger(__name__)


def find_tables(discoveries: Sequence[Discovery]) -> Found:
    """The tables at these places. Reads listings, and no table's metadata."""
    found = [each for discovery in discoveries for each in _listed(discovery)]
    return Found(
        tuple(each for each in found if isinstance(each, FoundTable)),
        tuple(dict.fromkeys(each for each in found if isinstance(each, Unlistable))),
        tuple(dict.fromkeys(each for each in found if isinstance(each, FoundOther))),
    )


def ask_place(name: str, kind: str, location: str) -> str | None:
    """Why a place cannot be listed; None if it answers. Its list is read up to the first table."""
    try:
        lister: Any = importlib.import_module(_LISTED_BY[kind])
        first = next(iter(lister.list_tables(location, 1)), None)
    except (NightkeepError, OSError) as failure:
        return f"{failure}"
    except Exception as failure:  # noqa: BLE001 -- as below, a surprise at one place is that of no other
        _log.info("%s: the traceback", name, exc_info=True)
        return failure_text(failure)
    return first.why if isinstance(first, UnlistedPlace) else None


def _listed(discovery: Discovery) -> list[FoundTable | FoundOther | Unlistable]:
    found = list[FoundTable | FoundOther | Unlistable]()
    try:
        found.extend(_taken(discovery))
    except (NightkeepError, OSError) as failure:
        found.append(_unlistable(discovery, str(failure)))
    except Exception as failure:  # noqa: BLE001 -- a surprise at one place must not cost the others their night
        _log.error("%s: %s", discovery.name, failure_text(failure), exc_info=bool(os.environ.get(DEBUG)))
        _log.info("%s: the traceback", discovery.name, exc_info=True)
        found.append(_unlistable(discovery, failure_text(failure)))
    return found


def _taken(discovery: Discovery) -> Iterator[FoundTable | FoundOther | Unlistable]:
    lister: Any = importlib.import_module(_LISTED_BY[discovery.kind])
    listed: Iterator[ListedTable | OtherTable | UnlistedPlace] = lister.list_tables(discovery.location, discovery.depth)
    for each in listed:
        if isinstance(each, UnlistedPlace):
            yield _unlistable(discovery, each.why, each.place)
        elif not discovery.takes(each.parts):
            continue
        elif isinstance(each, OtherTable):
            yield FoundOther(discovery.name_of(each.parts), each.kind, discovery.name)
        else:
            kind = each.format or discovery.kind
            yield FoundTable(discovery.name_of(each.parts), kind, each.location, discovery.name)


def _unlistable(discovery: Discovery, why: str, part: str = "") -> Unlistable:
    name = f"{discovery.name}: {part}" if part else discovery.name
    return Unlistable(name, discovery.kind, discovery.name, f"{name}: cannot be listed: {why}")
