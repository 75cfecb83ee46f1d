"""What all pages share: the templates, their filters, and lists that are cut. Every text in a page is escaped."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Final, Generic, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from nightkeep.model import UnitKey
from nightkeep.model.counted import counted
from nightkeep.model.operations import REWRITE_STAGES
from nightkeep.pages import bars, column_metrics
from nightkeep.pages.versions import made_at
from nightkeep.records.document import CheckStatus, PlanUnit, RunDocument, UnitResult
from nightkeep.records.index_rows import unmet_critical

T = TypeVar("T")

UPKEEP_STAGES: Final = (
    "list", "live", "compare", "tell", "before", "act", "sweep", "expire", "restore", "audit", "files",
)  # fmt: skip
MOST_ROWS: Final = 200
"""A page with more rows is slow to open. The document has all of them."""
_PARTS: Final = re.compile(r"(?<=[._/:-])(?=[^._/:-])")
"""Where a name may go on in the next line: behind a sign, and never inside a word."""


PageOf = Callable[[RunDocument], str | None]
TablePageOf = Callable[[str], str | None]


def no_page(_: object) -> None:
    """For pages that link to no other."""


@dataclass(frozen=True, slots=True)
class Links:
    """Relative links from a page to others; None for one that is not there. `page_of`: of a document's run, `table`: of
    a table's page, by its name. `values`: of the values of rows that a document's run found. `docs_index`: to the index
    of Data Docs."""

    page_of: PageOf = no_page
    table: TablePageOf = no_page
    index: str | None = None
    fleet: str | None = None
    docs_index: str | None = None
    values: PageOf = no_page


NO_LINKS: Final = Links()


@dataclass(frozen=True, slots=True)
class Excerpt(Generic[T]):
    """The first rows of a list that may be too long for a page, and how many there are."""

    shown: tuple[T, ...]
    total: int

    @property
    def hidden(self) -> int:
        return self.total - len(self.shown)


def excerpt(rows: Sequence[T]) -> Excerpt[T]:
    return Excerpt(tuple(rows[:MOST_ROWS]), len(rows))


def clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def unit_name(unit: PlanUnit | UnitResult) -> str:
    """The name of a unit for people: partition and bucket."""
    return str(UnitKey(unit.partition, unit.bucket))


def name_in_parts(name: str) -> Markup:
    """The name, which a browser may break between its parts alone."""
    return Markup("<wbr>").join(map(escape, _PARTS.split(name)))


def minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"


def check_mark(document: RunDocument) -> CheckStatus:
    """The mark of a check: red also where a critical expectation is not met, whoever is at fault."""
    return CheckStatus.FAILED if unmet_critical(document) else document.expectations.status


def _stage_colour(stage: str) -> int:
    known = REWRITE_STAGES if stage in REWRITE_STAGES else (*UPKEEP_STAGES, stage)
    return known.index(stage) % (len(REWRITE_STAGES) + 1)


@cache
def environment() -> Environment:
    """The templates with their filters."""
    made = Environment(
        loader=PackageLoader("nightkeep.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "clock": clock,
        "minute": minute,
        "parts": name_in_parts,
        "unit_name": unit_name,
        "stage_colour": _stage_colour,
        "shell": shlex.quote,
    }
    made.globals |= {
        "amount": bars.show_amount,
        "bytes": bars.show_bytes,
        "check_mark": check_mark,
        "count": "{:,}".format,
        "counted": counted,
        "made_at": made_at,
        "plain": str,
        "overlap": column_metrics.show_overlap,
        "seconds": bars.show_seconds,
        "share": column_metrics.show_share,
        "skipping": column_metrics.skipping_beside,
    }
    return made
