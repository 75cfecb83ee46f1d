"""Documents -> static HTML pages. A page is one file that loads nothing else. Every text in it is escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from nightkeep.model import Outcome, VerifyLevel
from nightkeep.model.operations import REWRITE_STAGES
from nightkeep.pages import bars, column_metrics
from nightkeep.pages.attention import Attention, attention_of
from nightkeep.pages.audit_section import AuditedCommits, audited_commits
from nightkeep.pages.facts import facts_of
from nightkeep.pages.retention_section import Leftover, Leftovers, leftovers, retention_summary
from nightkeep.pages.templating import NO_LINKS, UPKEEP_STAGES, Excerpt, Links, environment, excerpt
from nightkeep.records.document import PlanUnit, RunDocument, UnitResult
from nightkeep.redaction import redact

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


def render_run(
    documents: Sequence[RunDocument],
    *,
    title: str,
    generated_at: datetime,
    docs_pages: Mapping[str, str] | None = None,
    links: Links = NO_LINKS,
    attention: Sequence[Attention] | None = None,
) -> str:
    """The page of one run: what needs a person first, then its tables in order. Tables with nothing to do share a line.

    `generated_at` has a zone. `docs_pages`: links by `expectations.docs`. `attention`: what needs a person, where more
    is known than these documents."""
    stages = stage_names(documents)
    shown = [document for document in documents if not _is_quiet(document)]
    needs = attention_of(documents, {}) if attention is None else attention
    page = (
        environment()
        .get_template("run.html.j2")
        .render(
            title=title,
            generated_at=generated_at,
            worst=Outcome.worst(document.outcome for document in documents),
            lede=tally(documents),
            took=_took(documents),
            attention=excerpt(needs),
            sections=[_section(number, document) for number, document in enumerate(shown, 1)],
            quiet=[document for document in documents if _is_quiet(document)],
            worked={document.table for document in shown},
            stage_names=stages,
            stage_totals={s: sum(d.metrics.seconds.get(s, 0.0) for d in documents) for s in stages},
            rewrites=not documents or any(document.operation.rewrites for document in documents),
            upkeep=any(leftovers(document) is not None for document in documents),
            rows_proven=sum(document.rows_proven for document in documents),
            total_seconds=sum(document.total_seconds for document in documents),
            docs_pages=docs_pages or {},
            links=links,
        )
    )
    return redact(page)


def _is_quiet(document: RunDocument) -> bool:
    """Whether there was nothing to do, so that its name says it all. A plan that was asked for is shown."""
    has_more = document.plan.units or document.units
    return document.outcome is Outcome.UNCHANGED and document.operation.rewrites and not has_more


def _took(documents: Sequence[RunDocument]) -> str:
    """The time that the run took, beside the seconds of all its tables, which were at work side by side."""
    if not documents:
        return ""
    wall = max(d.finished_at for d in documents) - min(d.started_at for d in documents)
    work = sum(document.total_seconds for document in documents)
    took, together = bars.show_seconds(wall.total_seconds()), bars.show_seconds(work)
    return f"It took {took}; the stages of its tables add up to {together}."


def stage_names(documents: Sequence[RunDocument]) -> tuple[str, ...]:
    """The stages that any document measured: in the order of the flow, then unknown ones by name."""
    stages = {stage for document in documents for stage in document.metrics.seconds}
    in_order = (*REWRITE_STAGES[:-1], *UPKEEP_STAGES, REWRITE_STAGES[-1])
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
        plan=excerpt(document.plan.units),
        files=excerpt(files),
        proofs=excerpt(worst_first),
        columns=excerpt(changes),
        losers=column_metrics.losers(changes),
        delete_files=column_metrics.delete_files(extra),
        measured=tuple(facts_of(extra)),
        leftovers=left,
        audit=audit,
        first=excerpt(left.first if left else ()),
        failed=excerpt(left.failed if left else ()),
        kept=excerpt(left.kept if left else ()),
    )


def _verification(document: RunDocument) -> str:
    verification = document.verification
    if verification is None:
        return ""
    share = verification.share_of_rewrite
    cost = "" if share is None else f", for {share:.0%} of the rewrite's cost"
    return f"{_LEVEL_MEANING[verification.level]}{cost}."


def _sizes(extra: Mapping[str, object], key: str) -> list[int]:
    """The file sizes in `extra`. That may hold anything; a value that is no list of counts is not drawn."""
    sizes = extra.get(key)
    return [size for size in sizes if _is_count(size)] if isinstance(sizes, list | tuple) else []


def _levels(extra: Mapping[str, object], key: str) -> dict[str, int]:
    counts = extra.get(key)
    return {str(k): n for k, n in counts.items() if _is_count(n)} if isinstance(counts, Mapping) else {}


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _plural(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
