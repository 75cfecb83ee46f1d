"""Arguments of a job script -> a group of tables -> documents and a result file; exit status 0 once they are written.

A process has at most one Spark session, for the work and for the check. It starts when a table has work. The check is
imported only if something was published.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from nightkeep.admission.order import CallOptions, ReleaseOptions, RemovalOptions
from nightkeep.api.asked_rows import rows_to_delete, rows_to_update
from nightkeep.api.table_groups import check_tables, run_tables, sweep_tables
from nightkeep.commands.exit_status import parsed, status_of
from nightkeep.commands.options import OPTIONS
from nightkeep.discovery import completed, kept_found, knowing, located_some
from nightkeep.environment import add_from_file
from nightkeep.errors import STOPS, NightkeepError, UsageError
from nightkeep.groups.session.table_group import TableGroup
from nightkeep.groups.stored_document import StoredDocument
from nightkeep.model import Operation
from nightkeep.model.job_entry import JobEntry
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.model.version import __version__, works_with
from nightkeep.nights.run_tables import places_of
from nightkeep.places import remove_file, reports_place, write_file
from nightkeep.policy import Overrides, load_usable
from nightkeep.records.job_result import JobEnd, at_work_file, note_end
from nightkeep.redaction import redacted, redacted_output

_OF_WORK: Final = ("where", "full", "zorder", "hilbert", "target_size")
"""The options of `nightkeep run` that the form of a manual run has."""
_NO_OPTIONS: Final = CallOptions()


@redacted_output()
def run_job(argv: Sequence[str], *, operations: Sequence[Operation]) -> int:
    """Run `operations`, else the one that `argv` names, else those of each table's policy, on the tables of `argv`, and
    check every published version.

    Raises UsageError, before any work, for an invalid policy or option.
    """

    def work() -> int:
        arguments = _parse(argv)
        named = operations or ((Operation(arguments.operation),) if arguments.operation else ())
        group = _group(arguments, _call_options(arguments, named))
        with run_tables(group, named) as reported:
            return _write(arguments.result, reported, group)

    return _noting_end(argv, work)


@redacted_output()
def check_job(argv: Sequence[str]) -> int:
    """Check every version that the run of `argv` published and that no check has judged."""

    def work() -> int:
        arguments = parsed(_arguments(), argv)
        group = _group(arguments)
        with check_tables(group) as reported:
            return _write(arguments.result, reported, group)

    return _noting_end(argv, work)


@redacted_output()
def sweep_job(argv: Sequence[str]) -> int:
    """Expire and sweep the tables of `argv` by their policies, and check the remaining files."""

    def work() -> int:
        arguments = parsed(_arguments(), argv)
        group = _group(arguments)
        with sweep_tables(group) as reported:
            return _write(arguments.result, reported, group)

    return _noting_end(argv, work)


def _noting_end(argv: Sequence[str], work: Callable[[], int]) -> int:
    """Do the work of the job of `argv`, and note beside its result how it ended, once its session has ended."""
    result = _result_of(argv)
    try:
        add_from_file()
        status = work()
    except NightkeepError as failure:
        _note(result, JobEnd(status_of(failure), str(failure)))
        raise
    except SystemExit as stop:
        # The parser of the arguments has printed why.
        _note(result, JobEnd(stop.code if isinstance(stop.code, int) else 1, "its arguments were not understood"))
        raise
    _note(result, JobEnd(status))
    return status


def _result_of(argv: Sequence[str]) -> str | None:
    """The result file, also of arguments that are not understood."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--result")
    with suppress(argparse.ArgumentError):
        found: str | None = parser.parse_known_args(list(argv))[0].result
        return found
    return None


def _note(result: str | None, end: JobEnd) -> None:
    """Best effort: what a job did is in its documents."""
    if result is not None:
        with suppress(OSError, NightkeepError):
            note_end(result, end)


def require_version(expected: str | None) -> None:
    """Raise UsageError where the side that submits a job has a version that does not work with this one."""
    if expected is not None and not works_with(expected):
        raise UsageError(
            f"--expects: expected a job of Nightkeep {expected}, as the scheduler has it, found {__version__} in the "
            "environment of the job; install one version of Nightkeep for both"
        )


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _arguments()
    for name in _OF_WORK:
        row = OPTIONS[name]
        how: dict[str, Any] = {"action": "store_true"} if row.kind is bool else {"metavar": row.value}
        parser.add_argument(f"--{name.replace('_', '-')}", help=row.help, **how)
    add = parser.add_argument
    add("--operation", choices=tuple(Operation), help="what to do, instead of what policies ask for")
    add("--rows-where", help="of a delete or an update: the condition")
    add("--keys", help="of a delete: a file of keys")
    add("--set", help='of an update: a JSON list of "column = expression"')
    add("--files", choices=(SweepMode.QUARANTINE, SweepMode.DELETE), help="what a sweep or an expiry does with files")
    add("--run-id", help="of a restore: the run that moved the files to quarantine")
    add("--reason", help="of a release: why")
    add("--user", help="of a release: who asks for it")
    return parsed(parser, argv)


def _call_options(arguments: argparse.Namespace, operations: Sequence[Operation]) -> CallOptions:
    """What the operation takes of the arguments; the others are of no use to it. Raises UsageError."""
    match operations:
        case (Operation.DELETE,):
            return rows_to_delete(arguments.rows_where or None, arguments.keys or None)
        case (Operation.UPDATE,):
            return rows_to_update(_texts("--set", arguments.set), arguments.rows_where or None)
        case (Operation.SWEEP | Operation.EXPIRE,):
            mode = SweepMode(arguments.files) if arguments.files else None
            return CallOptions(removal=RemovalOptions(mode=mode))
        case (Operation.RESTORE,):
            if not arguments.run_id:
                raise UsageError("--run-id: expected the run that moved the files to quarantine, found none")
            return CallOptions(removal=RemovalOptions(of_run=arguments.run_id))
        case (Operation.RELEASE,):
            return CallOptions(release=ReleaseOptions(user=arguments.user or None, reason=arguments.reason or None))
    return CallOptions()


def _texts(option: str, given: str | None) -> tuple[str, ...]:
    try:
        listed = json.loads(given or "[]")
    except ValueError:
        listed = None
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise UsageError(f"{option}: expected a JSON list of texts, found {given!r:.200}")
    return tuple(listed)


def _arguments() -> argparse.ArgumentParser:
    """The arguments that all scripts share."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--policy", required=True, help="tables.yaml")
    parser.add_argument("--tables", default="", help="names or addresses, separated by commas")
    parser.add_argument("--table", action="append", default=[], help="one more, which may have a comma in it")
    parser.add_argument("--run-id-prefix", required=True, help="the same in every retry of a run")
    parser.add_argument("--reports", required=True, help="folder of the documents, or an address of a bucket")
    parser.add_argument("--result", help="the file that the list of outcomes goes to, or its address")
    parser.add_argument("--night", help="the order of a night with a budget")
    parser.add_argument("--died", action="append", default=[], help="a table at which an earlier process died")
    parser.add_argument("--one-by-one", action="store_true", help="no two tables side by side")
    parser.add_argument("--without-session", action="store_true", help="only what needs no Spark; the rest is left")
    parser.add_argument("--found", help="the tables that the run found, in a file")
    parser.add_argument("--dry-run", action="store_true", help="plan only")
    parser.add_argument("--expect-plan", metavar="DIGEST", help=OPTIONS["expect_plan"].help)
    parser.add_argument("--expects", metavar="VERSION", help="the Nightkeep of whoever submits the job")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # At INFO it logs which of its own functions it does not register.
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    return parser


def _group(arguments: argparse.Namespace, call: CallOptions = _NO_OPTIONS) -> TableGroup:
    given: dict[str, Any] = {name: getattr(arguments, name, None) or None for name in _OF_WORK}
    require_version(arguments.expects)
    tables = tuple(dict.fromkeys([*filter(None, arguments.tables.split(",")), *arguments.table]))
    if not tables:
        raise UsageError("--tables, --table: expected the name or address of a table, found none")
    loaded = load_usable(arguments.policy)
    if arguments.found:
        policy = located_some(completed(loaded, kept_found(arguments.found)), tables)
    else:
        policy = knowing(loaded, tables)
    return TableGroup(
        policy,
        tables,
        arguments.run_id_prefix,
        reports_place(arguments.reports),
        Overrides(**given),
        call,
        dry_run=arguments.dry_run,
        night=places_of(arguments.night),
        hand=at_work_file(arguments.result) if arguments.result else None,
        died=tuple(arguments.died),
        one_by_one=arguments.one_by_one,
        without_session=arguments.without_session,
        expected_plan=arguments.expect_plan or None,
    )


def _write(result: str | None, reported: Iterable[StoredDocument], group: TableGroup) -> int:
    """Write every entry as soon as it exists. Raises UsageError, before any work, if the file cannot be written.

    If Spark has ended, the work stops with status 1, as the other tables would fail too. The note of the tables at work
    stays.
    """
    entries = list[JobEntry]()
    _put(result, entries)
    try:
        return _write_each(result, entries, reported, group)
    except STOPS as stop:
        done = f"{len(entries)} documents are stored" if len(entries) != 1 else "1 document is stored"
        stop.add_note(f"{done}; a table at work keeps what it has published, and its document states what is left")
        raise


def _write_each(
    result: str | None, entries: list[JobEntry], reported: Iterable[StoredDocument], group: TableGroup
) -> int:
    for one in reported:
        if not group.goes_on():
            logging.error(
                "%s: the JVM of spark-submit is gone; what is left of the group is not started", one.document.table
            )
            return 1
        entries.append(one.to_json())
        logging.info(
            "%s %s: %s %s", one.document.table, one.document.operation, one.document.outcome, one.document.reason or ""
        )
        with suppress(UsageError):  # the last one reports it
            _put(result, entries)
    _put(result, entries)
    if result is not None:
        with suppress(OSError):
            remove_file(at_work_file(result))
    return 0


def _put(result: str | None, entries: Sequence[JobEntry]) -> None:
    if result is None:
        return
    try:
        # The file is complete at any time, as this process may die at any table.
        write_file(result, json.dumps(redacted(entries), indent=2) + "\n")
    except OSError as failure:
        raise UsageError(f"--result: expected a file that can be written, found {failure}") from failure
