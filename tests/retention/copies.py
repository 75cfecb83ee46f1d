"""Each metadata file of a table copied over each other one: a sweep names no file that readers need as an orphan."""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.retention.damage import Tallies, World

from nightkeep.errors import NightkeepError

SOME = 10
"""Copies that `make test` tries of each table."""


def copied(world: World, *, some: bool) -> Tallies:
    """Copy, sweep and undo. `some`: a few, of files of one size if there are any."""
    found = Tallies()
    for source, target in _copies(world.metadata, some=some):
        whole, times = target.read_bytes(), target.stat()
        target.write_bytes(source.read_bytes())
        os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))
        found.endings[_ending(world, found, f"{source.name} over {target.name}")] += 1
        target.write_bytes(whole)
        os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))
    return found


def _copies(metadata: Sequence[Path], *, some: bool) -> Sequence[tuple[Path, Path]]:
    every = [(one, other) for one, other in itertools.permutations(metadata, 2) if one.suffix == other.suffix]
    if not some:
        return every
    alike = [(one, other) for one, other in every if one.stat().st_size == other.stat().st_size]
    rest = [pair for pair in every if pair not in alike]
    return [*Random(1).sample(alike, min(SOME // 2, len(alike))), *Random(1).sample(rest, SOME // 2)]


def _ending(world: World, found: Tallies, case: str) -> str:
    try:
        look = world.look()
    except NightkeepError as failure:
        return f"stopped: {type(failure).__name__}"
    named = sorted(look.named & world.live)
    if not named:
        return "no harm"
    if look.refusal is not None:
        return "refused for want of evidence"
    found.failures.append(f"{case}: {named[:3]}")
    return "NAMED A LIVE FILE"
