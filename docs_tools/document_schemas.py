"""The types of documents and answers -> jobs/nightkeep/schemas/*.json, which are in the wheel.

`make schemas` writes them. A schema names every key that this release writes, requires those that each release wrote,
and lets a document have more: keys are only added. docs/stability.md states what that promises.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, Final, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import typing_extensions
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from nightkeep.api.night import WholeRunJson
from nightkeep.api.results import ExplanationJson, PagesJson, ReleaseJson
from nightkeep.api.tables import ListedJson, ValidationJson
from nightkeep.clustering.advise import Advice
from nightkeep.readiness.finding import FindingJson
from nightkeep.records import Hold, RunDocument
from nightkeep.records.check_report import CheckReport, DiffReport
from nightkeep.records.ledger import Measured
from nightkeep.records.releases import Released
from nightkeep.records.removal_facts import OrphanRow, RemovalFacts
from nightkeep.running.inspection.table_status import StatusJson

FOLDER: Final = Path(__file__).parents[1] / "jobs" / "nightkeep" / "schemas"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

SHAPES: Final[Mapping[str, tuple[Any, str]]] = {
    "run-document": (
        RunDocument,
        "One operation on one table in one run: a file of the reports, and what `delete`, `update` and `sql` print",
    ),
    "runs": (RunDocument | list[RunDocument], "What `plan` and `run` print: a document, or a list of several"),
    "history": (list[RunDocument], "What `history` and `check --left` print"),
    "removal-document": (RemovalFacts, "A run document of `sweep`, `expire` or `restore`, with what it removed"),
    "orphan": (OrphanRow, "A line of the file that `orphans_file` of a removal document names"),
    "hold": (Hold, "A file of the reports: why operations skip a table"),
    "releases": (list[Released], "A file of the reports: who released a table from its holds"),
    "ledger-entry": (Measured, "A line of a ledger of the reports: what a run measured"),
    "tables": (list[ListedJson], "What `tables` prints"),
    "status": (list[StatusJson], "What `status` prints"),
    "doctor": (list[FindingJson], "What `doctor` prints"),
    "validate": (ValidationJson, "What `validate` prints"),
    "explain": (ExplanationJson, "What `explain` prints"),
    "release": (ReleaseJson, "What `release` prints"),
    "night": (WholeRunJson, "What `night` and `sweep --all` print"),
    "report": (PagesJson, "What `report` prints"),
    "check": (CheckReport, "What `check` prints"),
    "diff": (DiffReport, "What `diff` prints"),
    "advise": (Advice, "What `advise` prints"),
}
"""Types by the names of their files, and what has them."""


_LATER: Final[Mapping[str, Sequence[str]]] = {"Metrics": ("health", "score"), "RunDocument": ("found_versions",)}
"""Keys by dataclass that documents of earlier releases lack."""


class _Written(GenerateJsonSchema):
    """Dataclasses as `records.codec` writes them: all keys, and those of `extra` beside them."""

    def dataclass_args_schema(self, schema: Any) -> dict[str, Any]:
        made = super().dataclass_args_schema(schema)
        made["properties"].pop("extra", None)
        later = _LATER.get(schema["dataclass_name"], ())
        made["required"] = [key for key in made["properties"] if key not in later]
        return made


def schema(name: str) -> dict[str, object]:
    """One schema, whole: it refers to no other file."""
    kind, title = SHAPES[name]
    made = _made(RunDocument) if kind is RemovalFacts else _made(kind)
    if kind is RemovalFacts:
        more = _made(RemovalFacts)
        made["properties"] |= more["properties"]
        made["$defs"] |= more["$defs"]
    return {"$schema": DIALECT, "$id": f"urn:nightkeep:{name}", "title": title, **made}


def _made(kind: Any) -> dict[str, Any]:
    adapter: TypeAdapter[Any] = TypeAdapter(_readable(kind))
    plain: dict[str, Any] = _plain(adapter.json_schema(mode="serialization", schema_generator=_Written))
    return plain


def _plain(value: Any, *, names: bool = False) -> Any:
    """Without titles, which repeat the names, and without defaults: every key is written. `names`: a mapping of
    properties by their names."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    left = value if names else {key: each for key, each in value.items() if key not in ("title", "default")}
    return {key: _plain(each, names=not names and key in ("properties", "$defs")) for key, each in left.items()}


def _readable(kind: Any) -> Any:
    """The type with TypedDicts of typing_extensions: before Python 3.12, pydantic does not take those of typing."""
    if is_typeddict(kind):
        # The set of required keys is wrong where annotations are texts.
        hints = get_type_hints(kind, include_extras=True)
        optional = {name for name, each in hints.items() if get_origin(each) is NotRequired or not kind.__total__}
        plain = {name: _readable(each) for name, each in get_type_hints(kind).items()}
        whole = {name: NotRequired[each] if name in optional else each for name, each in plain.items()}
        functional: Any = typing_extensions.TypedDict
        made = functional(kind.__name__, whole)
        made.__doc__ = kind.__doc__
        return made
    origin, arguments = get_origin(kind), tuple(map(_readable, get_args(kind)))
    if origin in (types.UnionType, Union):
        return reduce(or_, arguments)
    return origin[arguments] if origin in (list, dict) else kind


def text(name: str) -> str:
    """The file of a schema."""
    return json.dumps(schema(name), indent=2) + "\n"


def main(folder: Path = FOLDER) -> None:
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    for name in SHAPES:
        (folder / f"{name}.json").write_text(text(name), encoding="ascii")


if __name__ == "__main__":
    main()
