"""Arguments -> stages -> text, or one JSON document, on stdout; everything else goes to stderr."""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from nightkeep.care import Order, care
from nightkeep.engine import Engine
from nightkeep.errors import NightkeepError, RefusedTable, UsageError
from nightkeep.model import Operation, Outcome, VerifyLevel
from nightkeep.night import operations_of
from nightkeep.opinion import second_opinion
from nightkeep.policy import EffectivePolicy, PolicyFile, explain_text, load, parse_size
from nightkeep.report import (
    CheckStatus,
    RunDocument,
    load_history,
    plan_text,
    release,
    render_index,
    render_run,
    store,
    summary_text,
    write_page,
)  # fmt: skip

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Nightly care for lakehouse tables: plan, rewrite, prove, publish, check, report.",
)  # fmt: skip
POLICY_PLACES = ("tables.yaml", "dags/tables.yaml")
USAGE_STATUS = 2

TableArgument = Annotated[
    str, typer.Argument(help="A name of tables.yaml, or an address such as paimon:/path/to/table")
]
PolicyOption = Annotated[
    Path | None, typer.Option("--policy", help="tables.yaml; else $NIGHTKEEP_POLICY or ./tables.yaml")
]
ReportsOption = Annotated[str | None, typer.Option("--reports", help="Folder of documents; reports/ beside the policy")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout")]
OperationOption = Annotated[list[Operation] | None, typer.Option("--operation", help="Repeat for several")]
WhereOption = Annotated[str | None, typer.Option("--where", help="Partition filter; never changes rows")]
FullOption = Annotated[bool, typer.Option("--full", help="All files, not only new ones")]
TargetOption = Annotated[str | None, typer.Option("--target-size", help="Size of files written, such as 256MB")]
WritersOption = Annotated[bool, typer.Option("--allow-compacting-writers", help="Run beside a writer that compacts")]
MasterOption = Annotated[str, typer.Option("--master", help="Spark master")]


@dataclass(frozen=True, slots=True)
class _Place:
    """The policy file in force and where documents are kept."""

    policy: PolicyFile
    reports: str


@app.command()
def plan(
    table: TableArgument, operation: OperationOption = None, where: WhereOption = None, full: FullOption = False,  # noqa: FBT002
    target_size: TargetOption = None, allow_compacting_writers: WritersOption = False,  # noqa: FBT002
    policy: PolicyOption = None, reports: ReportsOption = None, as_json: JsonOption = False,  # noqa: FBT002
) -> None:  # fmt: skip
    """What a run would do, and why. Reads metadata only."""
    place = _place(policy, reports)
    chosen = _changed(
        place, table, where=where, full=full, target_size=target_size, allow_compacting_writers=allow_compacting_writers
    )
    with Engine(master="local[*]", task_memory_bytes=chosen.settings.task_memory) as engine:
        documents = [
            care(chosen, Order(each, "plan", place.reports, dry_run=True), mapper=engine.mapper)
            for each in operation or operations_of(chosen)
        ]
    _show(documents, as_json=as_json, text="\n".join(plan_text(d) for d in documents))


@app.command()
def run(
    table: TableArgument, operation: OperationOption = None, where: WhereOption = None, full: FullOption = False,  # noqa: FBT002
    target_size: TargetOption = None, allow_compacting_writers: WritersOption = False,  # noqa: FBT002
    verify: Annotated[VerifyLevel | None, typer.Option("--verify")] = None,
    no_check: Annotated[bool, typer.Option("--no-check", help="Leave the second opinion out")] = False,  # noqa: FBT002
    task_memory: Annotated[str | None, typer.Option("--task-memory", help="Such as 2GB")] = None,
    master: MasterOption = "local[*]",
    run_id: Annotated[str | None, typer.Option("--run-id", help="The same in every retry of a run")] = None,
    policy: PolicyOption = None, reports: ReportsOption = None, as_json: JsonOption = False,  # noqa: FBT002
) -> None:  # fmt: skip
    """Plan, rewrite, prove, publish and check."""
    place = _place(policy, reports)
    chosen = _changed(
        place, table, where=where, full=full, target_size=target_size, verify=verify, task_memory=task_memory,
        allow_compacting_writers=allow_compacting_writers,
    )  # fmt: skip
    name = run_id or f"manual-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
    checks = chosen.settings.check.enabled and not no_check
    with Engine(master=master, task_memory_bytes=chosen.settings.task_memory) as engine:
        documents = [
            _run_one(chosen, Order(each, name, place.reports), engine, checks=checks)
            for each in operation or operations_of(chosen)
        ]
    _show(documents, as_json=as_json, text=summary_text(documents))


@app.command()
def check(
    table: TableArgument,
    version: Annotated[int | None, typer.Option("--version", help="The published version; else the latest")] = None,
    base: Annotated[int | None, typer.Option("--base", help="What it must equal; else the version before")] = None,
    policy: PolicyOption = None, reports: ReportsOption = None, master: MasterOption = "local[*]",
    as_json: JsonOption = False,  # noqa: FBT002
) -> None:  # fmt: skip
    """A second opinion on a published version, by Spark SQL and Great Expectations."""
    chosen = _place(policy, reports).policy.effective(table)
    with Engine(master=master, task_memory_bytes=chosen.settings.task_memory) as engine:
        checker = engine.checker()
        found = checker.check(
            checker.CheckRequest(
                address=chosen.address, version=version, base_version=base,
                byte_budget=chosen.settings.check.byte_budget, commit_user=None,
            ),
            spark=engine.spark(),
        )  # fmt: skip
    _print(found.to_json() if as_json else str(found), as_json=as_json)
    raise typer.Exit(_CHECK_STATUS.get(CheckStatus(found.status), 0))


@app.command()
def diff(
    table: TableArgument,
    version: Annotated[int, typer.Option("--version")], other: Annotated[int, typer.Option("--other")],
    policy: PolicyOption = None, master: MasterOption = "local[*]", as_json: JsonOption = False,  # noqa: FBT002
) -> None:  # fmt: skip
    """Compare the content of two versions, row by row where it differs."""
    chosen = _place(policy, None).policy.effective(table)
    with Engine(master=master, task_memory_bytes=chosen.settings.task_memory) as engine:
        found = engine.differ().diff(chosen.address, version, other, spark=engine.spark())
    _print(found.to_json() if as_json else str(found), as_json=as_json)
    raise typer.Exit(0 if found.equal else Outcome.MISMATCH.exit_status)


@app.command()
def explain(table: TableArgument, policy: PolicyOption = None) -> None:
    """The policy in force for a table, and the line each value comes from."""
    print(explain_text(_place(policy, None).policy.effective(table)))


@app.command()
def history(
    table: Annotated[str | None, typer.Argument(help="A table; else all")] = None,
    policy: PolicyOption = None, reports: ReportsOption = None, as_json: JsonOption = False,  # noqa: FBT002
) -> None:  # fmt: skip
    """What was done, oldest first."""
    place = _place(policy, reports)
    name = None if table is None else place.policy.effective(table).address.name
    documents = load_history(place.reports, name)
    _print([d.to_json() for d in documents] if as_json else summary_text(documents), as_json=as_json)


@app.command("release")
def release_table(table: TableArgument, policy: PolicyOption = None, reports: ReportsOption = None) -> None:
    """Lift the hold that a failed check put on a table."""
    place = _place(policy, reports)
    name = place.policy.effective(table).address.name
    lifted = release(place.reports, name)
    print(f"{name}: no hold" if lifted is None else f"{name}: hold of run {lifted.run_id} lifted")


@app.command()
def report(
    policy: PolicyOption = None, reports: ReportsOption = None,
    out: Annotated[str | None, typer.Option("--out", help="Where pages go; else beside the documents")] = None,
) -> None:  # fmt: skip
    """Write the page of every run and the index over them."""
    place, now = _place(policy, reports), datetime.now(UTC)
    documents = load_history(place.reports)
    folder = out or place.reports
    pages: dict[str, str] = {}
    for name in dict.fromkeys(map(_run_name, documents)):
        mine = [document for document in documents if _run_name(document) == name]
        pages[name] = write_page(folder, name, render_run(mine, title=name, generated_at=now)).name
    index = render_index(documents, title="Nightkeep", generated_at=now, page_of=lambda d: pages.get(_run_name(d)))
    print(write_page(folder, "index", index))


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point. Failures a caller can act on become one line on stderr and an exit status."""
    try:
        app(args=argv, standalone_mode=True)
    except UsageError as failure:
        _fail(failure, USAGE_STATUS)
    except RefusedTable as failure:
        _fail(failure, Outcome.REFUSED.exit_status)
    except NightkeepError as failure:
        _fail(failure, Outcome.FAILED.exit_status)


_CHECK_STATUS = {CheckStatus.FAILED: Outcome.MISMATCH.exit_status, CheckStatus.ERRORED: Outcome.FAILED.exit_status}


def _run_one(chosen: EffectivePolicy, order: Order, engine: Engine, *, checks: bool) -> RunDocument:
    document = care(chosen, order, mapper=engine.mapper)
    store(document, order.reports)
    if checks and document.committed_version is not None:
        document = second_opinion(document, chosen, order.reports, engine=engine)
        store(document, order.reports)
    return document


def _run_name(document: RunDocument) -> str:
    """What the documents of one run over several tables have in common: run ids of a night end in the table."""
    return document.run_id.removesuffix(f":{document.table}")


def _place(policy: Path | None, reports: str | None) -> _Place:
    named = policy or os.environ.get("NIGHTKEEP_POLICY")
    file = Path(named) if named else next((Path(p) for p in POLICY_PLACES if Path(p).exists()), None)
    loaded = load(file) if file else load("tables.yaml", text="version: 1")
    beside = (file.parent if file else Path.cwd()) / "reports"
    return _Place(loaded, reports or os.environ.get("NIGHTKEEP_REPORTS") or str(beside))


def _changed(place: _Place, table: str, **asked: Any) -> EffectivePolicy:
    """The table's policy with what the command line says on top."""
    chosen = place.policy.effective(table)
    for name in ("target_size", "task_memory"):
        if asked.get(name) is not None:
            asked[name] = _size(name, asked[name])
    changes = {name: value for name, value in asked.items() if value not in (None, False)}
    return replace(chosen, settings=chosen.settings.model_copy(update=changes))


def _size(name: str, text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as failure:
        raise UsageError(f"--{name.replace('_', '-')}: expected {failure}, found {text!r}") from failure


def _show(documents: Sequence[RunDocument], *, as_json: bool, text: str) -> None:
    found = [document.to_json() for document in documents]
    _print((found[0] if len(found) == 1 else found) if as_json else text, as_json=as_json)
    raise typer.Exit(Outcome.worst(document.outcome for document in documents).exit_status)


def _print(value: Any, *, as_json: bool) -> None:
    print(json.dumps(value, indent=2) if as_json else value)


def _fail(failure: Exception, status: int) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"nightkeep: {failure}", markup=False)
    sys.exit(status)
