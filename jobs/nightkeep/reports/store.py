"""Documents <-> files below a reports folder. A file is replaced atomically.

<reports>/<table>/<run id>-<operation>.json    one document
<reports>/<table>/expectations/...             results in Great Expectations' format (`validations`)
<reports>/holds/<table>.json                   a hold on a table: only a release removes it
<reports>/holds/<table>~look.json              the version up to which a table's history was examined
<reports>/pages/<name>.html                    a page
<reports>/~found/<run>.json                    the tables that a run found
<reports>/~ledger/...                          what was predicted and measured (`ledger`)
"""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from nightkeep.errors import CorruptMetadata, EvidenceError
from nightkeep.model import Operation
from nightkeep.redaction import redacted
from nightkeep.reports.codec import decode, encode
from nightkeep.reports.document import Extra, RunDocument, to_text
from nightkeep.reports.file_names import slug
from nightkeep.reports.json_files import History, Unreadable, read_folders, read_json
from nightkeep.reports.ledger import LEDGER, keep_measured

_HOLDS, _PAGES = "holds", "pages"
# No slug begins like this, as `~` is followed by hexadecimal digits.
_FOUND = "~found"
# Larger than most documents.
_PROBED = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Why operations must skip a table: a published version failed its check; and how to undo that version."""

    table: str
    run_id: str
    operation: Operation
    since: datetime
    reason: str | None = None
    base_version: int | None = None
    committed_version: int | None = None
    go_back: str | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMark:
    """The version up to which a table's history was examined, its digest, and the commits that were reported."""

    table: str
    version: int
    identity: str
    told: tuple[str, ...] = ()
    extra: Extra = field(default_factory=dict)


def store(document: RunDocument, reports_dir: str | Path) -> Path:
    """Write or replace the document of its run, table and operation. Returns its path."""
    path = document_path(reports_dir, document.table, run_id=document.run_id, operation=document.operation)
    return replace_file(path, to_text(document))


def secure(document: RunDocument, reports_dir: str | Path) -> None:
    """Store a document before the work that it describes, and create the folder for holds.

    Raises EvidenceError if it cannot be written: the work must not be done then.
    """
    try:
        store(document, reports_dir)
        _hold_path(reports_dir, document.table).parent.mkdir(exist_ok=True)
    except OSError as failure:
        raise _unwritable(failure, document_folder(reports_dir, document.table)) from failure


def require_writable(reports_dir: str | Path, table: str) -> None:
    """Raise EvidenceError if no document of `table` can be written."""
    folder = document_folder(reports_dir, table)
    try:
        replace_file(folder / ".probe", " " * _PROBED).unlink()
    except OSError as failure:
        raise _unwritable(failure, folder) from failure


def store_or_say(document: RunDocument, reports_dir: str | Path) -> tuple[RunDocument, Path | None]:
    """Store the document of finished work, and note in the ledger what it measured. If it cannot be written, the
    document says so and the path is None."""
    try:
        path = store(document, reports_dir)
    except OSError as failure:
        why = f"its document cannot be written: {_why(failure)}"
        if document.committed_version is not None:
            why = f"version {document.committed_version} was published, but {why}"
        return replace(document, reason=_also(document.reason, why)), None
    keep_measured(document, reports_dir)
    return document, path


def document_folder(reports_dir: str | Path, table: str) -> Path:
    """The folder of a table's documents."""
    return Path(reports_dir) / _folder(table)


def document_path(reports_dir: str | Path, table: str, *, run_id: str, operation: Operation) -> Path:
    """The path of the document of a run, table and operation, whether it exists or not."""
    return document_folder(reports_dir, table) / f"{slug(run_id)}-{operation}.json"


def found_path(reports_dir: str | Path, prefix: str) -> Path:
    """The file of the tables that the run with this prefix found, whether it exists or not."""
    return Path(reports_dir) / _FOUND / f"{slug(prefix)}.json"


def night_path(reports_dir: str | Path, prefix: str) -> Path:
    """The file of the order of the night with this prefix, whether it exists or not."""
    return Path(reports_dir) / _FOUND / f"{slug(prefix)}~night.json"


def read_history(reports_dir: str | Path, table: str | None = None) -> History:
    """Every document, or those of one table, and the files that could not be read. Raises OSError if the reports folder
    itself cannot be listed."""
    root = Path(reports_dir)
    return read_folders([root / _folder(table)] if table is not None else document_folders(root))


def load_history(reports_dir: str | Path, table: str | None = None) -> tuple[RunDocument, ...]:
    """Every document, or those of one table, oldest start first. Raises CorruptMetadata for a damaged one."""
    history = read_history(reports_dir, table)
    for damaged in history.unreadable:
        raise damaged.error()
    return history.documents


def hold(reports_dir: str | Path, table: str, document: RunDocument) -> Hold:
    """Put `table` on hold because of `document`, replacing an earlier hold."""
    reason = Hold(
        table=table,
        run_id=document.run_id,
        operation=document.operation,
        since=document.finished_at,
        reason=document.reason,
        base_version=document.base_version,
        committed_version=document.committed_version,
        go_back=document.go_back,
    )
    replace_file(_hold_path(reports_dir, table), json.dumps(redacted(encode(reason)), indent=2) + "\n")
    return reason


def hold_or_say(reports_dir: str | Path, document: RunDocument) -> RunDocument:
    """Put the document's table on hold because of it. If no hold can be written, the document says what was done.

    On a full disk the document's file is linked as the hold: a link needs no space, and an unreadable hold counts too.
    """
    try:
        hold(reports_dir, document.table, document)
        return document
    except OSError as failure:
        why = f"the hold cannot be written: {_why(failure)}"
    path = document_path(reports_dir, document.table, run_id=document.run_id, operation=document.operation)
    try:
        os.link(path, _hold_path(reports_dir, document.table))
        why += f"; the run's document holds the table until nightkeep release {shlex.quote(document.table)}"
    except FileExistsError:
        why += "; an earlier hold stands"
    except OSError:
        why += "; NOTHING HOLDS THE TABLE: stop what works on it"
    return replace(document, reason=_also(document.reason, why))


def held(reports_dir: str | Path, table: str) -> Hold | None:
    """The hold on `table`, or None. Raises CorruptMetadata for an unreadable one, which counts as a hold too."""
    path = _hold_path(reports_dir, table)
    try:
        return decode(Hold, read_json(path), str(path))
    except FileNotFoundError:
        if path.is_symlink():
            raise CorruptMetadata(str(path), "a hold", "a link to nothing") from None
        return None


def release(reports_dir: str | Path, table: str) -> Hold | Unreadable | None:
    """Remove the hold on `table`, also an unreadable one, and return it; None if there is none.

    Raises EvidenceError if it cannot be removed.
    """
    path, hold = _hold_path(reports_dir, table), _lifted(reports_dir, table)
    try:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
    except OSError as failure:
        raise EvidenceError(str(path), "a hold that can be removed", failure.strerror or str(failure)) from failure
    return hold


def _lifted(reports_dir: str | Path, table: str) -> Hold | Unreadable | None:
    try:
        return held(reports_dir, table)
    except CorruptMetadata as failure:
        return Unreadable.of(_hold_path(reports_dir, table), failure)


def keep_look(reports_dir: str | Path, look: HistoryMark) -> None:
    """Store up to where a table's history was examined. Replaces the earlier mark."""
    replace_file(_look_path(reports_dir, look.table), json.dumps(encode(look), indent=2) + "\n")


def last_look(reports_dir: str | Path, table: str) -> HistoryMark | None:
    """The stored mark of `table`; None if there is none or if it cannot be read: the history is examined again then."""
    path = _look_path(reports_dir, table)
    try:
        return decode(HistoryMark, read_json(path), str(path))
    except (FileNotFoundError, CorruptMetadata):
        return None


def write_page(reports_dir: str | Path, name: str, html: str) -> Path:
    """Write or replace a page and return its path. Raises EvidenceError if it cannot be written."""
    path = Path(reports_dir) / _PAGES / f"{slug(name)}.html"
    try:
        return replace_file(path, html)
    except OSError as failure:
        raise EvidenceError(str(path), "a page that can be written", _why(failure)) from failure


def _unwritable(failure: OSError, folder: Path) -> EvidenceError:
    return EvidenceError(
        str(folder), "a place where the run's document can be written", f"{_why(failure)}; nothing was done"
    )


def _why(failure: OSError) -> str:
    return failure.strerror or str(failure)


def _also(reason: str | None, why: str) -> str:
    return f"{reason}; {why}" if reason else why


def _folder(table: str) -> str:
    name = slug(table)
    # No other table has a name with this letter escaped, as letters need no escape.
    return f"~{ord(name[0]):02x}{name[1:]}" if name in (_HOLDS, _PAGES) else name


def document_folders(root: Path) -> list[Path]:
    """The folders of all tables. Raises OSError if the reports folder cannot be listed; it may be missing."""
    try:
        names = sorted(os.listdir(root))
    except FileNotFoundError:
        return []
    return [root / name for name in names if name not in (_HOLDS, _PAGES, _FOUND, LEDGER)]


def _look_path(reports_dir: str | Path, table: str) -> Path:
    # No slug ends like this, as a single `~` in a slug is followed by hexadecimal digits.
    return Path(reports_dir) / _HOLDS / f"{slug(table)}~look.json"


def _hold_path(reports_dir: str | Path, table: str) -> Path:
    return Path(reports_dir) / _HOLDS / f"{slug(table)}.json"


def replace_file(path: Path, text: str) -> Path:
    """Write a file or replace it at once: readers see the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as sink:
            sink.write(text)
            sink.flush()
            os.fsync(sink.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
