"""Documents -> static HTML pages. A page is one file that loads nothing else. Every text in it is escaped."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Generic, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined

from nightkeep.model import Outcome, UnitKey, VerifyLevel
from nightkeep.pages import bars, column_metrics
from nightkeep.pages.audit_section import AuditedCommits, audited_commits
from nightkeep.pages.retention_section import Leftover, Leftovers, leftovers, retention_summary
from nightkeep.records.document import PlanUnit, RunDocument, UnitResult
from nightkeep.records.json_files import Unreadable
from nightkeep.redaction import redact

T = TypeVar("T")

STAGES = ("plan", "rewrite", "verify", "publish", "check")
_UPKEEP_STAGES = ("list", "live", "compare", "tell", "before", "act", "sweep", "expire", "restore", "audit", "files")

# A page with more rows is slow to open. The document has all of them.
_MOST_ROWS = 200
_LATELY = 20

_MEANING = {
    Outcome.VERIFIED: "Published, and proven to show readers the same rows.",
    Outcome.UNCHANGED: "There was nothing to do, so nothing was committed.",
    Outcome.SKIPPED: "Left alone this time.",
    Outcome.REFUSED: "Not supported, so nothing was done.",
    Outcome.CONFLICTED: "Another writer was first; the next run plans again.",
    Outcome.MISMATCH: "The rows differ.",
    Outcome.FAILED: "Something broke on the way.",
}
_LEVEL_MEANING = {
    VerifyLevel.FULL: "Every logical row of each touched unit was hashed on both sides",
    VerifyLevel.TOUCHED: "Rows that moved were hashed on both sides, rows left in place proven by position",
}


@dataclass(frozen=True, slots=True)
class Excerpt(Generic[T]):
    """The first rows of a list that may be too long for a page, and how many there are."""

    shown: tuple[T, ...]
    total: int

    @property
    def hidden(self) -> int:
        return self.total - len(self.shown)


@dataclass(frozen=True, slots=True)
class Section:
    """One document, prepared for its section of a page. `number` identifies the section."""

    number: int
    document: RunDocument
    meaning: str
    verification: str
    stages: tuple[bars.Bar, ...]
    sizes: bars.Pair | None
    levels: bars.Pair | None
    plan: Excerpt[PlanUnit]
    files: Excerpt[str]
    proofs: Excerpt[UnitResult]
    columns: Excerpt[column_metrics.ColumnChange]
    losers: str
    delete_files: str
    measured: tuple[tuple[str, str], ...]
    leftovers: Leftovers | None
    audit: AuditedCommits | None
    first: Excerpt[Leftover]
    failed: Excerpt[tuple[str, str]]
    kept: Excerpt[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table on the index: its newest document, its newest rewrite, and its latest outcomes, newest last.

    `verified_at` is when rows were last proven. A sweep proves none.
    """

    table: str
    last: RunDocument
    rewritten: RunDocument | None
    verified_at: datetime | None
    lately: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class RunRow:
    """A document on the index, and the link to its page if it has one."""

    document: RunDocument
    href: str | None


def render_run(
    documents: Sequence[RunDocument], *, title: str, generated_at: datetime, docs_pages: Mapping[str, str] | None = None
) -> str:
    """The page of one run, tables in order. `generated_at` has a zone. `docs_pages`: links by `expectations.docs`."""
    stages = stage_names(documents)
    page = (
        _environment()
        .get_template("run.html.j2")
        .render(
            title=title,
            generated_at=generated_at,
            worst=Outcome.worst(document.outcome for document in documents),
            lede=tally(documents),
            sections=[_section(number, document) for number, document in enumerate(documents, 1)],
            stage_names=stages,
            stage_totals={s: sum(d.metrics.seconds.get(s, 0.0) for d in documents) for s in stages},
            rewrites=not documents or any(document.operation.rewrites for document in documents),
            upkeep=any(leftovers(document) is not None for document in documents),
            rows_proven=sum(document.rows_proven for document in documents),
            total_seconds=sum(document.total_seconds for document in documents),
            docs_pages=docs_pages or {},
        )
    )
    return redact(page)


def render_index(
    history: Sequence[RunDocument],
    *,
    title: str,
    generated_at: datetime,
    page_of: Callable[[RunDocument], str | None] | None = None,
    unreadable: Sequence[Unreadable] = (),
    older: int = 0,
    docs_index: str | None = None,
) -> str:
    """The index of all runs: one row per table, then every run. `history` is oldest first.

    `page_of` returns a document's page as a relative link, None if it has none. `unreadable` are listed at the end, and
    `older` is how many documents were not read. `docs_index`: the link to the index of Data Docs, if there is one.
    """
    newest = [*reversed(history)][:_MOST_ROWS]
    page = (
        _environment()
        .get_template("index.html.j2")
        .render(
            title=title,
            generated_at=generated_at,
            lede=tally(history) if history else "No run has left a report yet.",
            tables=_table_rows(history),
            runs=[RunRow(document, page_of(document) if page_of else None) for document in newest],
            hidden=len(history) - len(newest) + older,
            older=older,
            unreadable=_excerpt([_readable_name(each) for each in unreadable]),
            docs_index=docs_index,
        )
    )
    return redact(page)


def stage_names(documents: Sequence[RunDocument]) -> tuple[str, ...]:
    """The stages that any document measured: in the order of the flow, then unknown ones by name."""
    stages = {stage for document in documents for stage in document.metrics.seconds}
    in_order = (*STAGES[:-1], *_UPKEEP_STAGES, STAGES[-1])
    return (*(s for s in in_order if s in stages), *sorted(stages - set(in_order)))


def tally(documents: Sequence[RunDocument]) -> str:
    """A summary, worst outcome first: `7 runs on 6 tables: 1 mismatch, 4 verified, 2 unchanged. 48,000 rows proven.`"""
    outcomes = Counter(document.outcome for document in documents)
    counts = ", ".join(f"{outcomes[o]} {o}" for o in reversed(Outcome) if outcomes[o]) or "nothing"
    tables = _plural(len({document.table for document in documents}), "table")
    runs = "" if len(documents) == len({d.table for d in documents}) else f"{_plural(len(documents), 'run')} on "
    rewritten = [document for document in documents if document.operation.rewrites]
    proven = f"{_plural(sum(d.rows_proven for d in rewritten), 'row')} proven." if rewritten or not documents else ""
    return " ".join(filter(None, (f"{runs}{tables}: {counts}.", proven, retention_summary(documents))))


def _section(number: int, document: RunDocument) -> Section:
    extra = document.metrics.extra
    files = [name for unit in document.plan.units for name in unit.input_files]
    worst_first = sorted(document.units, key=lambda unit: -[*Outcome].index(unit.outcome))
    changes = column_metrics.column_changes(extra)
    ordered = {s: document.metrics.seconds[s] for s in stage_names([document])}
    left, audit = leftovers(document), audited_commits(document)
    return Section(
        number=number,
        document=document,
        meaning=next((each.meaning for each in (left, audit) if each is not None), _MEANING[document.outcome]),
        verification=_verification(document),
        stages=bars.stages(ordered),
        sizes=bars.size_bins(_sizes(extra, "file_sizes_before"), _sizes(extra, "file_sizes_after")),
        levels=bars.levels(_levels(extra, "levels_before"), _levels(extra, "levels_after")),
        plan=_excerpt(document.plan.units),
        files=_excerpt(files),
        proofs=_excerpt(worst_first),
        columns=_excerpt(changes),
        losers=column_metrics.losers(changes),
        delete_files=column_metrics.delete_files(extra),
        measured=tuple((_words(key), _value(value)) for key, value in extra.items() if key not in column_metrics.DRAWN),
        leftovers=left,
        audit=audit,
        first=_excerpt(left.first if left else ()),
        failed=_excerpt(left.failed if left else ()),
        kept=_excerpt(left.kept if left else ()),
    )


def _verification(document: RunDocument) -> str:
    verification = document.verification
    if verification is None:
        return ""
    share = verification.share_of_rewrite
    cost = "" if share is None else f", for {share:.0%} of the rewrite's cost"
    return f"{_LEVEL_MEANING[verification.level]}{cost}."


def _table_rows(history: Sequence[RunDocument]) -> list[TableRow]:
    by_table: dict[str, list[RunDocument]] = {}
    for document in history:
        by_table.setdefault(document.table, []).append(document)
    rows = []
    for table, entries in sorted(by_table.items()):
        rewritten = [d for d in entries if d.operation.rewrites]
        verified = [d.started_at for d in rewritten if d.outcome is Outcome.VERIFIED]
        lately = tuple(d.outcome for d in entries[-_LATELY:])
        newest = rewritten[-1] if rewritten else None
        rows.append(TableRow(table, entries[-1], newest, verified[-1] if verified else None, lately))
    return rows


def _excerpt(rows: Sequence[T]) -> Excerpt[T]:
    return Excerpt(tuple(rows[:_MOST_ROWS]), len(rows))


def _sizes(extra: Mapping[str, object], key: str) -> list[int]:
    """The file sizes in `extra`. That may hold anything; a value that is no list of counts is not drawn."""
    sizes = extra.get(key)
    return [size for size in sizes if _is_count(size)] if isinstance(sizes, list | tuple) else []


def _levels(extra: Mapping[str, object], key: str) -> dict[str, int]:
    counts = extra.get(key)
    return {str(k): n for k, n in counts.items() if _is_count(n)} if isinstance(counts, Mapping) else {}


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _words(key: str) -> str:
    words = key.replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}".replace("Cpu", "CPU")


def _value(raw: object) -> str:
    if isinstance(raw, Mapping):
        text = ", ".join(f"{key} {_value(value)}" for key, value in raw.items())
    elif isinstance(raw, float):
        text = f"{raw:,.2f}"
    elif isinstance(raw, str) or not _is_count(raw):
        text = raw if isinstance(raw, str) else json.dumps(raw, default=str)
    else:
        text = f"{raw:,}"
    return text if len(text) <= 120 else f"{text[:120]} ..."


def _readable_name(each: Unreadable) -> str:
    text = str(each)
    return text if len(text) <= 500 else f"{text[:500]} ..."


def _plural(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def unit_name(unit: PlanUnit | UnitResult) -> str:
    """The name of a unit for people: partition and bucket."""
    return str(UnitKey(unit.partition, unit.bucket))


def _stage_colour(stage: str) -> int:
    known = STAGES if stage in STAGES else (*_UPKEEP_STAGES, stage)
    return known.index(stage) % (len(STAGES) + 1)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("nightkeep.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "clock": _clock,
        "unit_name": unit_name,
        "stage_colour": _stage_colour,
        "shell": shlex.quote,
    }
    environment.globals |= {
        "bytes": bars.show_bytes,
        "count": "{:,}".format,
        "plain": str,
        "overlap": column_metrics.show_overlap,
        "seconds": bars.show_seconds,
        "share": column_metrics.show_share,
        "skipping": column_metrics.skipping_beside,
    }
    return environment
