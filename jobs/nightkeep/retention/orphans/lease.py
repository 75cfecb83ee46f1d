"""A lease -> whether its process may still be at work. Only then do others leave its quarantine alone."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

Clock = Callable[[], int]
"""Returns the present time in epoch milliseconds."""

LEASE_MS: Final = 20 * 60 * 1000
"""How long after writing a part's plan a process may still be moving its files. The process itself stops after half
of that time."""


def wall_ms() -> int:
    """The Clock of this machine."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Lease:
    """The identity of a process. `started` differs for a later process with the same `pid`; `host` differs for each
    machine and container."""

    host: str
    pid: int
    started: str


def ourselves() -> Lease:
    pid = os.getpid()
    return Lease(_host(), pid, _started(pid))


def may_be_at_work(owner: Lease, since_ms: int, *, now_ms: int) -> bool:
    """Whether `owner`, which wrote its plan at `since_ms`, may still be moving files. False for this process.

    After LEASE_MS it no longer does, even if it is alive: it checks its clock before each move.
    """
    if abs(now_ms - since_ms) >= LEASE_MS:
        return False
    if owner.host != _host() or not owner.started:
        return True
    return owner.pid != os.getpid() and _started(owner.pid) == owner.started


def _host() -> str:
    """Host name and PID namespace: equal for processes that see each other's PIDs."""
    space = ""
    with suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return f"{socket.gethostname()} {space}".strip()


def _started(pid: int) -> str:
    """When the process started, in clock ticks since boot; "" if there is no such process, or only a zombie."""
    with suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        # proc(5): the name in parentheses may contain anything. The state follows it, and 19 fields later the start.
        fields = stat.read().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    return ""
