"""Results of functions whose commands print more than one run's document. Frozen; str() is the command's text.

`to_json` returns what the command prints for `--json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from nightkeep.card import render_card
from nightkeep.model import Operation, Outcome
from nightkeep.model.counted import counted
from nightkeep.pages import (
    few_lines,
    history_card,
    history_text,
    plan_head,
    plans_card,
    plans_text,
    run_name,
    runs_card,
    summary_text,
)
from nightkeep.policy import EffectivePolicy, explain_text
from nightkeep.policy.explain import settings_of
from nightkeep.records import Hold, RunDocument, Unreadable
from nightkeep.records.codec import encode
from nightkeep.records.releases import Released
from nightkeep.redaction import redact, redacted
from nightkeep.running.inspection.handled_operations import HandledOperation

SettingJson = TypedDict("SettingJson", {"setting": str, "value": str, "from": str, "layer": str})
"""A setting in force, and the line that it comes from. A TypedDict by a call, as one key is a word of Python."""


class HandledJson(TypedDict):
    """An operation of the table's format, and what of the table it is refused for."""

    operation: Operation
    nightly: bool
    refused_for: list[str]


class ExplanationJson(TypedDict):
    """What `explain` prints."""

    table: str
    address: str
    settings: list[SettingJson]
    operations: list[HandledJson]


class ReleasedByJson(TypedDict):
    """Who released a table, and why."""

    user: str
    reason: str | None


class ReleaseJson(TypedDict):
    """What `release` prints. `lifted`: whether there was a hold. `unkept`: why the release is not in the history."""

    table: str
    lifted: bool
    run_id: str | None
    released: ReleasedByJson | None
    unkept: str | None


class PagesJson(TypedDict):
    """What `report` prints: the pages that it wrote."""

    index: str
    runs: list[str]
    unreadable: list[str]
    data_docs: str | None


@dataclass(frozen=True, slots=True)
class Runs:
    """The documents of one call, one per operation, in the order in which they ran. `is_plan`: of plans only."""

    documents: tuple[RunDocument, ...]
    is_plan: bool = False

    def __iter__(self) -> Iterator[RunDocument]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, place: int) -> RunDocument:
        return self.documents[place]

    @property
    def outcome(self) -> Outcome:
        """The worst of the documents' outcomes."""
        return Outcome.worst(document.outcome for document in self.documents)

    def to_json(self) -> dict[str, object] | list[dict[str, object]]:
        """One document, or a list if there are several."""
        documents = [document.to_json() for document in self.documents]
        return documents[0] if len(documents) == 1 else documents

    def __str__(self) -> str:
        if self.is_plan:
            return plans_text(self.documents)
        return summary_text(self.documents)

    def __repr__(self) -> str:
        if self.is_plan:
            return few_lines(counted(len(self.documents), "plan"), [*map(plan_head, self.documents)])
        return few_lines(f"{counted(len(self.documents), 'run')}, {self.outcome}", [*map(str, self.documents)])

    def _repr_html_(self) -> str:
        return plans_card(self.documents) if self.is_plan else runs_card(self.documents)


@dataclass(frozen=True, slots=True)
class RunHistory:
    """The stored documents, oldest first, the files that cannot be read, and the releases of their tables. `limit`: how
    many of the newest runs these are, where there may be more."""

    documents: tuple[RunDocument, ...]
    unreadable: tuple[Unreadable, ...]
    releases: tuple[Released, ...] = ()
    limit: int | None = None

    def __iter__(self) -> Iterator[RunDocument]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, place: int) -> RunDocument:
        return self.documents[place]

    def to_json(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = redacted(encode(self.documents))
        return found

    def __str__(self) -> str:
        released = [redact(str(each)) for each in self.releases]
        more = [f"The newest {self.limit} runs; more by --last N or --since DATE"] if self.limit else []
        return "\n".join([history_text(self.documents), *more, *([""] if released else []), *released])

    def has_runs(self, count: int | None) -> bool:
        """Whether these are documents of so many runs."""
        return count is not None and len({*map(run_name, self.documents)}) == count

    def __repr__(self) -> str:
        return few_lines(f"history of {counted(len(self.documents), 'document')}", [*map(str, self.documents[::-1])])

    def _repr_html_(self) -> str:
        return history_card(self.documents, [*map(str, (*self.unreadable, *self.releases))])


@dataclass(frozen=True, slots=True)
class Explanation:
    """The policy in force for one table, the origin of each value, and which operations handle the table."""

    policy: EffectivePolicy
    operations: tuple[HandledOperation, ...] = ()

    @property
    def table(self) -> str:
        return self.policy.address.name

    def to_json(self) -> ExplanationJson:
        settings: list[SettingJson] = [
            {"setting": each.name, "value": each.value, "from": each.place, "layer": each.layer}
            for each in settings_of(self.policy)
        ]
        operations: list[HandledJson] = [
            {"operation": each.operation, "nightly": each.nightly, "refused_for": list(each.refused_for)}
            for each in self.operations
        ]
        address = redact(str(self.policy.address))
        return {"table": self.table, "address": address, "settings": settings, "operations": operations}

    def __str__(self) -> str:
        width = max((len(each.operation) for each in self.operations), default=0)
        lines = [
            f"{each.operation:{width}}  {line}" if place == 0 else f"{'':{width}}  {line}"
            for each in self.operations
            for place, line in enumerate(_handled(each))
        ]
        return "\n".join([explain_text(self.policy), *(["", "operations of this table", *lines] if lines else [])])

    def _repr_html_(self) -> str:
        rows = [(each.name, each.value, each.place, each.layer) for each in settings_of(self.policy)]
        lines = (
            str(self.policy.address),
            *(f"{each.operation}: {'; '.join(_handled(each))}" for each in self.operations),
        )
        return render_card(self.table, lines, ("setting", "value", "from", "layer"), rows)


def _handled(operation: HandledOperation) -> list[str]:
    if operation.refused_for:
        return [f"refused: {reason}" for reason in operation.refused_for]
    return ["handled, every night" if operation.nightly else "handled, on request"]


@dataclass(frozen=True, slots=True)
class Release:
    """The released hold: None if there was none, `Unreadable` if its file could not be read. `released`: who did so,
    when and why. `unkept`: why that could not be kept for the history."""

    table: str
    hold: Hold | Unreadable | None
    released: Released | None = None
    unkept: str | None = None

    def to_json(self) -> ReleaseJson:
        run_id = self.hold.run_id if isinstance(self.hold, Hold) else None
        by = self.released
        who: ReleasedByJson | None = None if by is None else {"user": by.user, "reason": by.reason}
        document: ReleaseJson = {
            "table": self.table,
            "lifted": self.hold is not None,
            "run_id": run_id,
            "released": who,
            "unkept": self.unkept,
        }
        return redacted(document)

    def __str__(self) -> str:
        unkept = "" if self.unkept is None else f"; the history does not have it: {self.unkept}"
        return f"{self._released()}{unkept}"

    def _released(self) -> str:
        if isinstance(self.hold, Unreadable):
            return f"{self.table}: hold released, though it could not be read: {self.hold}"
        if self.hold is None:
            return f"{self.table}: no hold"
        runs = self.hold.runs
        named = f"hold of run {runs[0]}" if len(runs) == 1 else f"holds of runs {', '.join(runs)}"
        return f"{self.table}: {named} released"

    def _repr_html_(self) -> str:
        return render_card(self.table, (str(self).removeprefix(f"{self.table}: "),))


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages that were written, the index and one for each run, and the documents that cannot be read.

    `data_docs`: the index of Great Expectations' pages, if they were asked for. A page is named by its path, or in a
    bucket by its address.
    """

    index: Path | str
    runs: tuple[Path | str, ...]
    unreadable: tuple[Unreadable, ...]
    data_docs: Path | str | None = None

    def to_json(self) -> PagesJson:
        unreadable = [redact(str(each)) for each in self.unreadable]
        docs = None if self.data_docs is None else str(self.data_docs)
        runs = [str(page) for page in self.runs]
        return {"index": str(self.index), "runs": runs, "unreadable": unreadable, "data_docs": docs}

    def __str__(self) -> str:
        return "\n".join(map(str, filter(None, [self.index, self.data_docs])))

    def _repr_html_(self) -> str:
        sentences = (f"index: {self.index}", *map(str, self.unreadable))
        return render_card("report", sentences, ("page of a run",), [(str(page),) for page in self.runs])
