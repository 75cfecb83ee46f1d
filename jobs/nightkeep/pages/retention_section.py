"""RunDocument.extra -> the findings and actions of a sweep, an expiry or a restore. Pure; knows no HTML.

    mode                       dry-run, quarantine or delete
    orphans                    [{"path", "bytes", "modified_at", "kind"}], the first of them
    orphans_total, orphans_bytes, orphans_file             all of them: how many, and the file that lists them
    live_files, young_files, unknown_files, cutoff         files that are not removed, and the time from which on a
                               file is young
    by_kind, by_age            {name: {"files": n, "bytes": n}}, in the order to be shown; ages are `sweep_rules.AGES`
    acted, left, purged        {"files": n, "bytes": n}: files removed (or restored), changed meanwhile, purged
    failed                     [{"path", "reason"}]: files that could not be removed or restored
    quarantine, closed         the folder of the quarantined files, and runs whose quarantine had open parts
    expired, kept              [version], and [{"version", "reason"}] of those that stay; the orphans of an expiry are
                               the files that only expired versions needed
    notes, not_compared        further remarks, and why contents before and after were not compared
    restored_run               the run whose files were restored

A document may hold anything under these names; values of another form are not shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from nightkeep.model import Operation, Outcome
from nightkeep.pages.bars import show_bytes
from nightkeep.records.document import CheckStatus, RunDocument

_MEANING = {
    Outcome.VERIFIED: "Done, and every file of every retained version was found where it has to be.",
    Outcome.UNCHANGED: "There was nothing to do, so nothing was touched.",
    Outcome.SKIPPED: "Nothing was touched.",
    Outcome.REFUSED: "Nothing was touched.",
    Outcome.CONFLICTED: "Another writer was first; the next run looks again.",
    Outcome.MISMATCH: "The table does not read as it did before.",
    Outcome.FAILED: "Something broke on the way, or was not as it has to be.",
}
_RELEASED = "The table is maintained again."
_NOT_LOOKED_AT = "Done. Nobody has looked since whether everything that is retained is there."


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files of one kind or age, and their share of all bytes."""

    name: str
    files: int
    bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class Leftover:
    """One orphan file. `modified_at` is in UTC; if the document's value is no time, it is that value."""

    path: str
    bytes: int
    modified_at: str
    kind: str


@dataclass(frozen=True, slots=True)
class Count:
    """Files and bytes; None if not counted."""

    files: int | None = None
    bytes: int | None = None

    def __str__(self) -> str:
        if self.files is None:
            return "-"
        noun = "file" if self.files == 1 else "files"
        return f"{self.files:,} {noun}" + ("" if self.bytes is None else f", {show_bytes(self.bytes)}")


@dataclass(frozen=True, slots=True)
class Leftovers:
    """The facts of a document about orphan files. `gone` are deleted, `aside` are in quarantine. `brings_back`: the
    arguments of the command that restores the files, None if there are none to restore."""

    meaning: str
    mode: str
    orphans: Count
    listed: str
    by_kind: tuple[FileGroup, ...]
    by_age: tuple[FileGroup, ...]
    first: tuple[Leftover, ...]
    gone: Count
    aside: Count
    back: Count
    counted: tuple[tuple[str, str], ...]
    failed: tuple[tuple[str, str], ...]
    expired: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]
    folder: str
    notes: tuple[str, ...]
    brings_back: tuple[str, str] | None


def leftovers(document: RunDocument) -> Leftovers | None:
    """The facts of a document; None for a rewrite or an audit, which has none."""
    if document.operation.rewrites or document.operation is Operation.AUDIT:
        return None
    extra = document.extra
    acted, folder = _count(extra.get("acted")), _text(extra.get("quarantine"))
    restores, quarantines = document.operation is Operation.RESTORE, bool(folder)
    return Leftovers(
        meaning=_meaning(document),
        mode=_text(extra.get("mode")),
        orphans=Count(_whole(extra.get("orphans_total")), _whole(extra.get("orphans_bytes"))),
        listed=_text(extra.get("orphans_file")),
        by_kind=_groups(extra.get("by_kind")),
        by_age=_groups(extra.get("by_age")),
        first=tuple(_leftover(orphan) for orphan in _mappings(extra.get("orphans"))),
        gone=Count() if restores or quarantines else acted,
        aside=acted if quarantines and not restores else Count(),
        back=acted if restores else Count(),
        counted=tuple(_counted(document)),
        failed=_pairs(extra.get("failed"), "path"),
        expired=tuple(_texts(extra.get("expired"))),
        kept=_pairs(extra.get("kept"), "version"),
        folder=folder,
        notes=(*_texts(extra.get("notes")), *_texts([extra.get("not_compared")])),
        brings_back=(document.table, document.run_id) if quarantines and not restores and acted.files else None,
    )


def _meaning(document: RunDocument) -> str:
    if document.outcome is not Outcome.VERIFIED:
        return _MEANING[document.outcome]
    if document.operation is Operation.RELEASE:
        return _RELEASED
    is_looked_at = document.expectations.status in (CheckStatus.PASSED, CheckStatus.FAILED)
    return _MEANING[Outcome.VERIFIED] if is_looked_at else _NOT_LOOKED_AT


def retention_summary(documents: Sequence[RunDocument]) -> str:
    """The sums over all documents: `12 orphan files, 3.0 MB, found; 8 files, 2.0 MB, gone; 4 files, 1.0 MB, in
    quarantine.` May be empty."""
    sections = [each for document in documents if (each := leftovers(document))]
    sweeps = [leftovers(document) for document in documents if document.operation is Operation.SWEEP]
    orphans = _sum(each.orphans for each in sweeps if each)
    counts = {
        "gone": _sum(each.gone for each in sections),
        "in quarantine": _sum(each.aside for each in sections),
        "restored": _sum(each.back for each in sections),
    }
    parts = [f"{str(orphans).replace('file', 'orphan file', 1)}, found"] if orphans.files is not None else []
    parts += [f"{count}, {what}" for what, count in counts.items() if count.files]
    return f"{'; '.join(parts)}." if parts else ""


def _counted(document: RunDocument) -> Iterable[tuple[str, str]]:
    """Labels and numbers that the document has, the most important first."""
    extra = document.extra
    counts = {
        _acted_label(document): _count(extra.get("acted")),
        "Left, as they had changed": _count(extra.get("left")),
        "Purged from older quarantines": _count(extra.get("purged")),
        "Live files": Count(_whole(extra.get("live_files"))),
        "Too young to be judged": Count(_whole(extra.get("young_files"))),
        "Of no kind we know, left alone": Count(_whole(extra.get("unknown_files"))),
    }
    yield from ((label, str(count)) for label, count in counts.items() if count.files is not None)
    texts = {
        "Of run": _text(extra.get("restored_run")),
        "Modified before": _time(extra.get("cutoff")),
        "Finished what was cut short in": ", ".join(_texts(extra.get("closed"))),
    }
    yield from ((label, text) for label, text in texts.items() if text)


def _acted_label(document: RunDocument) -> str:
    if document.operation is Operation.RESTORE:
        return "Restored"
    return "In quarantine" if _text(document.extra.get("quarantine")) else "Gone"


def _groups(value: object) -> tuple[FileGroup, ...]:
    if not isinstance(value, Mapping):
        return ()
    counts = {str(name): _count(each) for name, each in value.items()}
    known = {name: (each.files, each.bytes or 0) for name, each in counts.items() if each.files is not None}
    total = sum(size for _, size in known.values())
    return tuple(FileGroup(name, files, size, size / total if total else 0.0) for name, (files, size) in known.items())


def _leftover(orphan: Mapping[str, object]) -> Leftover:
    size = _whole(orphan.get("bytes"))
    return Leftover(_text(orphan.get("path")), size or 0, _time(orphan.get("modified_at")), _text(orphan.get("kind")))


def _time(value: object) -> str:
    text = _text(value)
    try:
        moment = datetime.fromisoformat(text)
        return text if moment.tzinfo is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError):
        return text


def _pairs(value: object, name: str) -> tuple[tuple[str, str], ...]:
    return tuple((_text(each.get(name)), _text(each.get("reason"))) for each in _mappings(value))


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []


def _texts(value: object) -> list[str]:
    return [_text(each) for each in value if _text(each)] if isinstance(value, list | tuple) else []


def _count(value: object) -> Count:
    return Count(_whole(value.get("files")), _whole(value.get("bytes"))) if isinstance(value, Mapping) else Count()


def _sum(counts: Iterable[Count]) -> Count:
    known = [count for count in counts if count.files is not None]
    return Count(sum(c.files or 0 for c in known), sum(c.bytes or 0 for c in known)) if known else Count()


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
