"""Documents and prices -> what work cost and what it saves, by month and operation. Pure; formulas are on the page.

Nothing is guessed: a figure that no document has measured makes no amount.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nightkeep.model.prices import Prices
from nightkeep.pages.fleet import cpu_of
from nightkeep.pages.retention_section import leftovers
from nightkeep.records.document import RunDocument

_GB: Final = 1 << 30
_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class MoneyRow:
    """The amounts of an operation in a month. `work`: what its tasks cost once. `storage`: what the files that it
    deleted no longer cost in each month. `requests`: what a read of the whole table, of each once, costs less."""

    month: str
    operation: str
    work: float | None = None
    storage: float | None = None
    requests: float | None = None

    def plus(self, other: MoneyRow) -> MoneyRow:
        """The sums of both."""
        return MoneyRow(
            self.month,
            self.operation,
            _sum(self.work, other.work),
            _sum(self.storage, other.storage),
            _sum(self.requests, other.requests),
        )

    @property
    def has_any(self) -> bool:
        return any((self.work, self.storage, self.requests))


def money_of(documents: Iterable[RunDocument], prices: Prices | None) -> tuple[MoneyRow, ...]:
    """A row for each month and operation with an amount, the newest month first; none without prices."""
    if prices is None:
        return ()
    rows: dict[tuple[str, str], MoneyRow] = {}
    for document in documents:
        row = _row(document, prices)
        key = (row.month, row.operation)
        rows[key] = rows[key].plus(row) if key in rows else row
    found = [row for row in rows.values() if row.has_any]
    return tuple(sorted(sorted(found, key=lambda row: row.operation), key=lambda row: row.month, reverse=True))


def formulas(prices: Prices) -> tuple[str, ...]:
    """How each amount is made, with its price."""
    named = prices.currency or "in the currency of the policy"
    core, stored, read = prices.core_hour, prices.gb_month, prices.requests_1000
    parts = []
    if core is not None:
        parts.append(f"Work: CPU seconds of tasks / 3,600 x {core:g} for an hour of a core.")
    if stored is not None:
        parts.append(f"Storage: bytes that sweeps and expiry deleted / 2^30 x {stored:g} for a GB and month.")
    if read is not None:
        parts.append(f"Requests: files fewer / 1,000 x {read:g} for 1,000 requests, at one request for each file.")
    return (f"Amounts are {named}.", *parts) if parts else ()


def _row(document: RunDocument, prices: Prices) -> MoneyRow:
    month, metrics = f"{document.finished_at:%Y-%m}", document.metrics
    cpu, left = cpu_of(document), leftovers(document)
    gone = None if left is None else left.gone.bytes
    fewer = None
    if document.committed_version is not None and metrics.files_before is not None and metrics.files_after is not None:
        fewer = metrics.files_before - metrics.files_after
    return MoneyRow(
        month,
        document.operation,
        None if cpu is None or prices.core_hour is None else cpu / _HOUR * prices.core_hour,
        None if gone is None or prices.gb_month is None else gone / _GB * prices.gb_month,
        None if fewer is None or prices.requests_1000 is None else fewer / 1000 * prices.requests_1000,
    )


def _sum(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return sum(known) if known else None
