"""RunDocument.extra["audit"] -> the commits that an audit judged, for pages and text. Pure; knows no HTML.

    commits           [{"version", "kind", "author", "time_ms", "verdict", "missing", "extra", "doubled", "why"}], the
                      worst first
    commits_total     how many were judged
    vanished          [{"version", "rolled_back", "why"}]
    coverage          a sentence

A document may hold anything under these names; values of another form are not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from nightkeep.model import Operation, Outcome
from nightkeep.pages.text_table import printable
from nightkeep.records.document import RunDocument

_MEANING = {
    Outcome.VERIFIED: "What others committed keeps the rows that it states to keep, as far as the coverage goes.",
    Outcome.UNCHANGED: "No commit since the last audit.",
    Outcome.SKIPPED: "Nothing could be proven.",
    Outcome.REFUSED: "The table cannot be audited.",
    Outcome.MISMATCH: "A commit is not what it states, or something is missing.",
}


@dataclass(frozen=True, slots=True)
class CommitLine:
    """A commit as a page shows it. `made_at` is in UTC, `found` the rows that differ, in words."""

    version: str
    made: str
    made_at: str
    verdict: str
    found: str
    why: str


@dataclass(frozen=True, slots=True)
class AuditedCommits:
    """The judged commits, the worst first. `hidden`: how many the document does not list."""

    meaning: str
    commits: tuple[CommitLine, ...]
    hidden: int
    vanished: tuple[str, ...]


def audited_commits(document: RunDocument) -> AuditedCommits | None:
    """What an audit found; None for another operation."""
    if document.operation is not Operation.AUDIT:
        return None
    section = document.extra.get("audit")
    found: Mapping[str, object] = section if isinstance(section, Mapping) else {}
    commits = tuple(_commit(each) for each in _mappings(found.get("commits")))
    total = found.get("commits_total")
    hidden = max(0, total - len(commits)) if isinstance(total, int) else 0
    vanished = tuple(str(each.get("why", "")) for each in _mappings(found.get("vanished")))
    meaning = _MEANING.get(document.outcome, "The audit could not be finished.")
    return AuditedCommits(meaning, commits, hidden, vanished)


def audit_text(document: RunDocument) -> str:
    """The outcome, then a line for each commit that the document lists. Ends without a newline."""
    lines = [f"{document.table}: audit {document.outcome}: {document.reason}"]
    found = audited_commits(document)
    for each in found.commits if found is not None else ():
        details = "".join(f": {text}" for text in (each.found, each.why) if text)
        lines.append(f"  {each.verdict}: version {each.version}, {each.made}, {each.made_at}{details}")
    return "\n".join(map(printable, lines))


def _commit(each: Mapping[str, object]) -> CommitLine:
    return CommitLine(
        version=str(each.get("version", "")),
        made=f"{each.get('kind', '')} by {each.get('author', '')}",
        made_at=_time(each.get("time_ms")),
        verdict=str(each.get("verdict", "")),
        found=", ".join(_differing(each)),
        why=str(each.get("why") or ""),
    )


def _differing(each: Mapping[str, object]) -> Iterator[str]:
    for name, words in (("missing", "missing"), ("extra", "extra"), ("doubled", "of them doubled")):
        count = each.get(name)
        if isinstance(count, int) and count:
            yield f"{count:,} {'row' if count == 1 else 'rows'} {words}" if name != "doubled" else f"{count:,} {words}"


def _time(value: object) -> str:
    try:
        return f"{datetime.fromtimestamp(int(str(value)) / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return ""


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []
