"""Values of rows that a run found -> a page of their own, apart from the pages that show none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from nightkeep.model import UnitKey
from nightkeep.pages.templating import environment
from nightkeep.records.check_report import Difference, Row, UnitDifference
from nightkeep.records.row_values import RowValues
from nightkeep.redaction import redact

_FACTS: Final[Mapping[str, str]] = {
    "observed_value": "Found",
    "partial_unexpected_list": "Values that are not as expected, the first of them",
}


@dataclass(frozen=True, slots=True)
class DifferingRows:
    """The rows of a unit that only one side has, each with the side that has it and its values as text, by column."""

    unit: UnitKey
    comparison: str
    difference: Difference
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class ShownResult:
    """An expectation that shows values: its name, and sentences with them."""

    name: str
    facts: tuple[str, ...]


def render_row_values(
    values: RowValues, *, generated_at: datetime, run: str | None = None, table: str | None = None
) -> str:
    """The page. `run` and `table`: links to the pages that lead to it, None for one that is not there."""
    page = (
        environment()
        .get_template("row_values.html.j2")
        .render(
            title=f"Values of rows: {values.table}",
            generated_at=generated_at,
            values=values,
            differences=[*map(_differing, values.differences)],
            results=[*_results(values.validations)],
            run=run,
            table=table,
        )
    )
    return redact(page)


def _differing(found: UnitDifference) -> DifferingRows:
    sides = {"missing": found.difference.missing_rows, "extra": found.difference.extra_rows}
    columns = tuple(dict.fromkeys(name for rows in sides.values() for row in rows for name in row))
    rows = tuple((side, _texts(row, columns)) for side, rows in sides.items() for row in rows)
    return DifferingRows(found.unit, found.comparison, found.difference, columns, rows)


def _texts(row: Row, columns: Sequence[str]) -> tuple[str, ...]:
    return tuple("" if name not in row else "null" if row[name] is None else str(row[name]) for name in columns)


def _results(validations: Sequence[Mapping[str, object]]) -> Iterator[ShownResult]:
    """The results that show values. The file may hold anything; what is no result is left out."""
    for validation in validations:
        listed = validation.get("results")
        for each in listed if isinstance(listed, list | tuple) else ():
            if shown := _result(each):
                yield shown


def _result(value: object) -> ShownResult | None:
    config, result, raised = (_mapping(value, key) for key in ("expectation_config", "result", "exception_info"))
    facts = [f"{name}: {_listed(result[key])}" for key, name in _FACTS.items() if result.get(key) not in (None, [], ())]
    if raised.get("raised_exception") is True:
        facts.append(f"Errored: {raised.get('exception_message')}")
    if not facts:
        return None
    arguments = _mapping(config, "kwargs")
    return ShownResult(f"{config.get('type')} {arguments.get('column', '')}".rstrip(), tuple(facts))


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _mapping(value: object, key: str) -> Mapping[str, object]:
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}
