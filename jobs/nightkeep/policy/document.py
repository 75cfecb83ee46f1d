"""The keys at the top of tables.yaml and of the files that it imports."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from nightkeep.policy.budget import Budget
from nightkeep.policy.discover_entry import DiscoverEntry
from nightkeep.policy.setting_types import Text
from nightkeep.policy.settings import Defaults, PatternEntry, TableEntry

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
