"""A lease -> whether the process that holds it may still be at work. Only then is its quarantine left alone."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

Clock = Callable[[], int]
"""Epoch milliseconds, now."""

LEASE_MS: Final = 20 * 60 * 1000
"""So long after it wrote a part's list a process may be moving its files; it stops after half."""


def wall_ms() -> int:
    """The Clock of this machine."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Lease:
    """A process: `started` tells it from a later one with its number. `host` tells apart machines and containers."""

    host: str
    pid: int
    started: str


def ourselves() -> Lease:
    pid = os.getpid()
    return Lease(_host(), pid, _started(pid))


def may_be_at_work(owner: Lease, since_ms: int, *, now_ms: int) -> bool:
    """Whether a process that began at `since_ms` may still be moving files. We ourselves never are.

    One that lives on has other work by then: before the first name of any file goes, it looks at its clock.
    """
    if abs(now_ms - since_ms) >= LEASE_MS:
        return False
    if owner.host != _host() or not owner.started:
        return True
    return owner.pid != os.getpid() and _started(owner.pid) == owner.started


def _host() -> str:
    """Equal for processes that see each other's numbers."""
    space = ""
    with suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return f"{socket.gethostname()} {space}".strip()


def _started(pid: int) -> str:
    """When the process began, in ticks since boot; empty where there is none, or only what is left of a dead one."""
    with suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        # proc(5): the name in parentheses may hold anything; the state follows, and 19 fields later the start.
        fields = stat.read().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    return ""
