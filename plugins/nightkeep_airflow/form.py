"""Operations that a DAG offers -> the fields of its form, the options of its job, and what is wrong with a form.

The table of operations (`nightkeep.model.OPERATION_TABLE`) has which operation takes and needs which field.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from airflow.sdk import Param

from nightkeep.model import OPERATION_TABLE, RUN_OPERATIONS, Operation
from nightkeep.policy.units import SIZE_PATTERN

KEEPS_ROWS: Final = (*RUN_OPERATIONS, Operation.SWEEP, Operation.EXPIRE)
"""What a form offers unless its DAG names operations: what changes no row that a reader sees."""


def form(operations: Collection[Operation], tables: Sequence[str]) -> dict[str, Param]:
    """The fields of a form that offers these operations. It suggests the tables."""
    table = Param(
        type="string",
        title="Table",
        description="A name of tables.yaml, or an address such as paimon:/warehouse/shop.db/orders",
        examples=[*tables],
        minLength=1,
    )
    return {
        "table": table,
        "operation": _operation(operations),
        **{name: Param(**_FIELDS[name]) for name in fields(operations)},
    }


def fields(operations: Collection[Operation]) -> tuple[str, ...]:
    """The names of the form's other fields, in order: those of each operation, and what any of these takes."""
    taken = {*_OF_EACH, *(name for each in operations for name in OPERATION_TABLE[each].takes)}
    return tuple(name for name in _FIELDS if name in taken)


def job_options(operations: Collection[Operation]) -> tuple[str, ...]:
    """Templates of the job's options, which render blank for a field that is empty or off."""
    offered = fields(operations)
    release = ("{{ '--user=' ~ (dag_run.triggering_user_name or '') if params.operation == 'release' else '' }}",)
    return (
        "{{ '--operation=' ~ params.operation if params.operation else '' }}",
        *(_template(name) for name in offered),
        *(release if Operation.RELEASE in operations else ()),
    )


def fault_of(params: Mapping[str, Any], operations: Collection[Operation]) -> str | None:
    """Why the fields of a form do not fit its operation, in a sentence; None where they do."""
    chosen = params.get("operation")
    of = (Operation(chosen),) if chosen else RUN_OPERATIONS
    named = str(chosen or "what the policy asks for")
    for name in fields(operations):
        takers = [each for each in operations if name in OPERATION_TABLE[each].takes]
        if name not in _OF_EACH and _is_given(name, params) and not {*takers} & {*of}:
            return f"{name}: expected operation {' or '.join(takers)}, found {named}"
    if params.get("zorder") and params.get("hilbert"):
        return "zorder, hilbert: expected one of the two, as files are laid along one curve; found both"
    return next(_missing(params, of[0]), None) if chosen else None


def _missing(params: Mapping[str, Any], operation: Operation) -> Iterator[str]:
    for names in OPERATION_TABLE[operation].needs:
        given = [name for name in names if params.get(name)]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            yield f"{operation}: expected {' or '.join(names)}, found {found}"


def _is_given(name: str, params: Mapping[str, Any]) -> bool:
    """Whether a field has another value than the form gives it."""
    return bool(params.get(name)) and params.get(name) != _FIELDS[name]["default"]


def _operation(operations: Collection[Operation]) -> Param:
    """Left empty, the policy decides, where the form offers all that policies ask for."""
    names: list[str | None] = [each.value for each in operations]
    if not {*RUN_OPERATIONS} <= {*operations}:
        first: dict[str, Any] = {"default": names[0]} if len(names) == 1 else {}
        return Param(type="string", title="Operation", description="What to do", enum=names, **first)
    left = "Left empty: what the policy asks for, else what suits the table's format"
    return Param(**_text("Operation", left, enum=[None, *names]))


def _text(title: str, description: str, **more: object) -> dict[str, Any]:
    """A field that may stay empty."""
    return {"default": None, "type": ["null", "string"], "title": title, "description": description, **more}


def _switch(title: str, description: str, *, default: bool) -> dict[str, Any]:
    return {"default": default, "type": "boolean", "title": title, "description": description}


_FIELDS: Final[Mapping[str, dict[str, Any]]] = {
    "where": _text("Partition filter", "For example dt >= '2026-11-01'; it chooses partitions and never changes rows"),
    "dry_run": _switch("Dry run", "Show what would be done; change nothing", default=True),
    "full": _switch("Full", "All files, not only new ones", default=False),
    "zorder": _text("Z-order", "Columns to cluster by when optimizing, separated by commas; not together with Hilbert"),
    "hilbert": _text("Hilbert", "Columns to cluster by along a Hilbert curve, separated by commas"),
    "target_size": _text("Target size", "Of the files written, such as 256MB", pattern=SIZE_PATTERN),
    "files": {
        "default": "quarantine",
        "type": "string",
        "enum": ["quarantine", "delete"],
        "title": "Files",
        "description": "What a sweep or an expiry does with files: from quarantine they can be restored",
    },
    "rows_where": _text("Rows", "Condition in Spark SQL, such as user_id = 7; rows for which it is NULL stay"),
    "keys": _text("Keys", "Parquet, JSON Lines or CSV file of keys, where the job runs; instead of a condition"),
    "set": {
        "default": None,
        "type": ["null", "array"],
        "items": {"type": "string"},
        "title": "Set",
        "description": 'Of an update: a line "column = expression" for each column, in Spark SQL of the old row',
    },
    "run_id": _text("Run", "Of a restore: the run that moved the files to quarantine, as its page names it"),
    "reason": _text("Why", "Of a release: why, which the history keeps"),
    "expect_plan": _text(
        "Expected plan", "Do nothing unless the plan has this digest; the page of a dry run fills it in"
    ),
}
_OF_EACH: Final = ("dry_run", "expect_plan")
"""Fields of every operation."""


def _template(name: str) -> str:
    """The option of a job by the field of this name: a template that renders blank if the field is empty or off."""
    # Of an attribute named `keys`, a template gets the method of the mapping.
    option, given = f"--{name.replace('_', '-')}", f"params['{name}']"
    if name == "files":
        # It always has a value, which only these operations take.
        return f"{{{{ '{option}=' ~ {given} if params.operation in ('sweep', 'expire') else '' }}}}"
    kinds = _FIELDS[name]["type"]
    value = f"'{option}=' ~ {given}"
    if kinds == "boolean":
        value = f"'{option}'"
    elif "array" in kinds:
        value = f"'{option}=' ~ ({given} | tojson)"
    return f"{{{{ {value} if {given} else '' }}}}"
