"""The keys at the top of tables.yaml and of the files that it imports, and those of an entry of `discover`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr, model_validator

from nightkeep.model.dotted import join_name
from nightkeep.policy.layers import Origin
from nightkeep.policy.setting_types import AuditBudget, Budget, PriceList, ReportSettings, Text
from nightkeep.policy.settings import Defaults, PatternEntry, TableEntry

KINDS: Final = ("paimon", "delta", "iceberg", "hive", "glue")
DEPTH: Final = 3
"""Folders below a Delta entry's own that are looked into: for example catalog, database and table."""
_PART: Final = re.compile(r"\{([^{}]*)\}")
_PARTS: Final = ("name", "database", "table")


def _template(text: str) -> str:
    parts = _PART.findall(text)
    if not {"name", "table"} & set(parts) or set(parts) - set(_PARTS) or {"{", "}"} & set(_PART.sub("", text)):
        raise ValueError("text with {name}, or with {table}, perhaps after {database}")
    return text


class DiscoverEntry(BaseModel):
    """A place where tables are looked for when a run starts: one of paimon, delta, iceberg, hive and glue."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    paimon: Text | None = Field(default=None, description="A Paimon warehouse: <database>.db/<table>.")
    delta: Text | None = Field(default=None, description="A folder with Delta tables in it, or in folders of it.")
    iceberg: Text | None = Field(default=None, description="A catalog of pyiceberg's configuration; all namespaces.")
    hive: Text | None = Field(
        default=None, description="A Hive metastore, thrift://host:9083: its tables of all formats."
    )
    glue: Text | None = Field(default=None, description="The AWS region of a Glue catalog: its tables of all formats.")
    depth: Annotated[StrictInt, Field(ge=1, le=16)] | None = Field(
        default=None, description=f"How many folders deep Delta tables are looked for. null: {DEPTH}."
    )
    include: tuple[Text, ...] = Field(
        default=(),
        description="Globs on the names that are found: database.table, or a Delta table's path with dots. none: all.",
    )
    exclude: tuple[Text, ...] = Field(default=(), description="Globs on the names that are left out.")
    name: Annotated[StrictStr, AfterValidator(_template)] = Field(
        default="{name}",
        description="What tables are called: {name} is the name that is found, {table} its last part, {database} the "
        "parts before.",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> DiscoverEntry:
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            raise ValueError(f"one of {', '.join(KINDS)}", " and ".join(kinds) or "none")
        if self.depth is not None and self.delta is None:
            raise ValueError("depth only with delta", f"it with {kinds[0]}")
        return self

    @property
    def kind(self) -> str:
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @property
    def place(self) -> str:
        """Where to look, as written."""
        return str(getattr(self, self.kind))


@dataclass(frozen=True, slots=True)
class Discovery:
    """A place where tables are looked for. `name` is what is written in the file, without values of variables.

    `location` is an absolute path, a URI, a catalog's name, or a metastore: `thrift://HOST:PORT`, `glue://REGION`.
    """

    name: str
    kind: str
    location: str
    entry: DiscoverEntry
    origin: Origin

    @property
    def depth(self) -> int:
        return self.entry.depth or DEPTH

    def takes(self, parts: Sequence[str]) -> bool:
        """Whether a table of this database and name is one of those that the entry is about."""
        name, entry = join_name(parts), self.entry
        included = not entry.include or any(fnmatchcase(name, glob) for glob in entry.include)
        return included and not any(fnmatchcase(name, glob) for glob in entry.exclude)

    def name_of(self, parts: Sequence[str]) -> str:
        """What the table of this database and name is called."""
        values = {"name": join_name(parts), "database": join_name(parts[:-1]), "table": join_name(parts[-1:])}
        return _PART.sub(lambda match: values[match[1]], self.entry.name)

    def may_name(self, table: str) -> bool:
        """Whether a table with this name may come from here."""
        fixed = _PART.split(self.entry.name)[::2]
        return re.fullmatch(".*".join(map(re.escape, fixed)), table, re.DOTALL) is not None


_PATTERNS = Field(default=(), description="Layers for tables whose names match; the most specific one wins.")
_DISCOVER = Field(default=(), description="Where tables are looked for.")
_TABLES = Field(default=(), description="Tables with layers of their own.")


class TeamDocument(BaseModel):
    """A file that another one imports: its own tables, and patterns for them alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = Field(default=1, description="Version of this file's format.")
    patterns: tuple[PatternEntry, ...] = _PATTERNS
    discover: tuple[DiscoverEntry, ...] = _DISCOVER
    tables: tuple[TableEntry, ...] = _TABLES


class Document(BaseModel):
    """The whole file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = Field(description="Version of this file's format.")
    budget: Budget | None = Field(default=None, description="What a night may cost. null: no limit.")
    audit_budget: AuditBudget | None = Field(
        default=None, description="What the audits of one run may take. null: only the budget of each table."
    )
    prices: PriceList | None = Field(default=None, description="Prices for amounts on pages. null: no amounts.")
    reports: ReportSettings = Field(
        default_factory=ReportSettings, description="What becomes of documents, pages and results of runs."
    )
    defaults: Defaults = Field(default_factory=Defaults, description="The layer below all patterns and tables.")
    imports: tuple[Text, ...] = Field(
        default=(),
        description="Files of teams, relative to this one; globs may be used. Each has patterns for its own "
        "tables, tables, and discover.",
    )
    patterns: tuple[PatternEntry, ...] = _PATTERNS
    discover: tuple[DiscoverEntry, ...] = _DISCOVER
    tables: tuple[TableEntry, ...] = _TABLES


def json_schema() -> dict[str, object]:
    """JSON Schema (2020-12) of tables.yaml, for editors."""
    schema = Document.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Nightkeep table policy"
    return schema
