"""What storage, requests and work cost, as the policy states it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prices:
    """Amounts of one currency; None where there is no price. `gb_month`: for a GB (2^30 bytes) stored for a month,
    `requests_1000`: for 1,000 requests that read, `core_hour`: for an hour of a core."""

    currency: str = ""
    gb_month: float | None = None
    requests_1000: float | None = None
    core_hour: float | None = None
