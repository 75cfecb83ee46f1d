"""Failures, sorted by what the caller should do. Expected outcomes are returned, never raised.

NightkeepError
|-- UsageError             correct the call or the policy, then run again (exit status 2)
|   |-- AddressError       a TABLE that cannot be opened
|   `-- PolicyError        tables.yaml cannot be understood
|-- Surprise               report it, with the traceback of --debug (exit status 1)
|-- RefusedTable           skip this table: it uses a feature we do not handle (exit status 3)
|   `-- RefusedRows          rows that cannot be rewritten or changed as asked, found when they were read
`-- EvidenceError          stop and keep every file: something is not as the format promises (exit status 1)
    |-- CorruptMetadata    bytes that do not parse as what they claim to be
    |-- MissingFile        a file that metadata names is not there
    |   `-- BeingCreated     another writer is about to write it: run again
    |-- NotCreated         the store certainly did not create a file: nothing was published
    |-- Unreachable        a catalog, a cluster or the place of reports does not answer now
    |-- ReaderEnded        a process ended, or was ended, while it read a table's metadata
    `-- UnknownOutcome     a commit may or may not have happened; nothing may be deleted

Interrupted                a signal: no failure, and nothing may handle it as one (exit status 130 or 143)
"""

from __future__ import annotations

import difflib
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import Final, cast

from nightkeep.causes import failure_text
from nightkeep.redaction import redact

USAGE_STATUS: Final = 2
"""The exit status of a wrong request."""
MAX_PART: Final = 600
"""Most characters of a part of a message. Names and values come from metadata and may have any length."""
MAX_LINE: Final = 2_000
_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def did_you_mean(name: str, names: Iterable[str], shown: Callable[[str], str] = str) -> str:
    """The end of a message about a name that is unknown: the known one that it is nearly, as it is to be written. Empty
    where none is near."""
    nearest = nearest_name(name, names)
    return "" if nearest is None else f"; did you mean {shown(nearest)}?"


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """The known name that an unknown one is nearly. One that differs in case alone is the nearest."""
    known = [*names]
    alike = [each for each in known if each.casefold() == name.casefold()]
    return next(iter(alike or difflib.get_close_matches(name, known, n=1)), None)


def brief(text: str, most: int = MAX_PART) -> str:
    """`text` for a message: without secrets, shortened in the middle if it is longer than `most` characters, and with
    unprintable characters escaped."""
    text = redact(text)
    shown = text if len(text) <= most else f"{text[: most * 2 // 3]}...({len(text)} characters)...{text[-most // 6 :]}"
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), shown)


def kind_of(value: object) -> str:
    """The type and size of a parsed value. The value itself is not shown: a linked file may contain anything."""
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else "a boolean"
    if isinstance(value, int):
        return f"a whole number of {value.bit_length()} bits"
    sized = next((named for kind, named in _SIZED.items() if isinstance(value, kind)), None)
    return sized.format(len(cast(Sized, value))) if sized else f"a value of type {type(value).__name__}"


_SIZED: Final[Mapping[type, str]] = {
    str: "a text of {} characters",
    bytes: "{} bytes",
    dict: "an object of {} entries",
    list: "a list of {} entries",
}


def reason_of(failure: BaseException) -> str:
    """A parser's error for a message, its type first, without quotations of the parsed text.

    Only the first line is kept. Everything from its first opening quote or bracket to the last closing one is removed,
    as the quoted text may contain quotes too.
    """
    if isinstance(failure, UnicodeDecodeError):
        return f"{type(failure).__name__}: {failure.reason} at byte {failure.start}"
    first, *more = str(failure).split("\n")
    begin = _QUOTED.search(first)
    if begin is not None:
        # A quotation that begins on the first line may end on another.
        end = -1 if more else max(first.rfind(each) for each in _CLOSING)
        first = f"{first[: begin.start()]}...{first[end + 1 :] if end >= begin.end() else ''}"
    return f"{type(failure).__name__}: {first.strip()}" if first.strip(". ") else type(failure).__name__


_QUOTED: Final = re.compile("(?<![A-Za-z0-9])[bru]?[\"'`{\\[<]")
_CLOSING: Final = "\"'`}]>"


class NightkeepError(Exception):
    """The root of all exceptions that this library raises on purpose."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*(_lines(each) if isinstance(each, str) else each for each in parts))


class UsageError(NightkeepError):
    """The request itself is wrong; nothing was read or written for it."""


class AddressError(UsageError):
    """A table address that cannot be opened."""


class NotAccepted(NightkeepError):
    """A receiver of messages that answered, but not with success."""


class PolicyError(UsageError):
    """A policy file that cannot be understood; the message starts with file:line."""


class Surprise(NightkeepError):
    """An unexpected failure. `subject` is the table and the operation."""

    def __init__(self, subject: str, failure: BaseException) -> None:
        super().__init__(f"{subject}: {failure_text(failure)}")


class RefusedTable(NightkeepError):
    """The table uses `feature`, which is not handled. `advice` states what would work."""

    def __init__(self, table: str, feature: str, advice: str) -> None:
        self.table, self.feature, self.advice = brief(table), brief(feature), brief(advice)
        super().__init__(f"{self.table}: {self.feature}; {self.advice}")

    def __reduce__(self) -> tuple[type[RefusedTable], tuple[str, str, str]]:
        return (type(self), (self.table, self.feature, self.advice))


class RefusedRows(RefusedTable):
    """Rows that cannot be rewritten, or changed as asked. It is found when they are read, so other tasks may have
    written files."""


def unfit_values(subject: str, expected: str, found: str) -> RefusedRows:
    """The refusal of values that do not fit the table's schema, such as nanoseconds in a column of microseconds, or no
    value where one is required. They are the same tomorrow, and engines differ in what they read there."""
    plain = found.removeprefix("ValueError: ").removeprefix("ArrowInvalid: ")
    advice = "rewrite these rows with the engine of the table"
    return RefusedRows(subject, f"expected {expected}, found {plain}", advice)


class OtherPlan(NightkeepError):
    """The plan is not the one that was shown to who started the run; nothing was done."""

    def __init__(self, expected: str, found: str) -> None:
        self.expected, self.found = expected, found
        super().__init__(
            f"the plan is not the one that was shown: expected {expected}, found {found}; nothing was done, plan again"
        )

    def __reduce__(self) -> tuple[type[OtherPlan], tuple[str, str]]:
        return (type(self), (self.expected, self.found))


class EvidenceError(NightkeepError):
    """Something contradicts the format's promises: stop, and keep every file as evidence."""

    def __init__(self, subject: str, expected: str, found: str) -> None:
        self.subject, self.expected, self.found = brief(subject), brief(expected), brief(found)
        super().__init__(f"{self.subject}: expected {self.expected}, found {self.found}")

    def __reduce__(self) -> tuple[type[EvidenceError], tuple[str, str, str]]:
        return (type(self), (self.subject, self.expected, self.found))


class CorruptMetadata(EvidenceError):
    """Bytes that do not parse as what they claim to be."""


class MissingFile(EvidenceError):
    """A file that metadata names is not in storage."""


class BeingCreated(MissingFile):
    """A missing file that its writer writes last. Nothing is damaged, and a later run may find it."""


class NotCreated(EvidenceError):
    """A file that was certainly not created, because its bytes could not be written."""


class Unreachable(EvidenceError):
    """A catalog, a cluster or a place of reports that does not answer now. Nothing was changed."""


class ReaderEnded(EvidenceError):
    """The process that read a table's metadata ended without an answer; nothing was changed."""


class UnknownOutcome(EvidenceError):
    """It is unknown whether a commit happened. None of its files may be deleted."""


class Interrupted(BaseException):
    """A signal asked this process to end. Notes state what was published or removed. `run_id`: the run that was at
    work.

    No Exception, as it must pass all that handles failures; no KeyboardInterrupt, which is the caller's in a library.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.run_id: str | None = None
        self.kills = False
        """Whether children are killed: a JVM that has not started yet would print why it cannot go on."""
        super().__init__(f"interrupted by {signal.Signals(number).name}")


class NeedsSession(BaseException):
    """The work needs a Spark session, and this process is to start none. Nothing was changed.

    No Exception, as it must pass all that makes a document of a failure: another process does the work.
    """


STOPS: Final = (KeyboardInterrupt, Interrupted)
"""What ends the work from outside. Whoever catches one adds what it knows and raises it again."""


def add_stop(stop: BaseException, note: str, run_id: str) -> None:
    """Add to an interrupt what a run had done. Further frames, which know less, add nothing."""
    if not getattr(stop, "__notes__", None):
        stop.add_note(note)
    if isinstance(stop, Interrupted):
        stop.run_id = run_id


def _lines(text: str) -> str:
    """A message with each of its lines cut. A policy's faults are one line each."""
    return "\n".join(brief(line, MAX_LINE) for line in redact(text).split("\n"))


DEBUG: Final = "NIGHTKEEP_DEBUG"
"""Environment variable: if set, unexpected failures are printed with their traceback."""


@contextmanager
def naming(subject: object, expected: str) -> Iterator[None]:
    """Turn a ValueError into CorruptMetadata about `subject`: Arrow and kernels do not know which file they read."""
    try:
        yield
    except ValueError as failure:
        raise CorruptMetadata(str(subject), expected, reason_of(failure)) from failure
