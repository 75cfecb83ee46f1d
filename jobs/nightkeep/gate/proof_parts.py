"""Two versions of a set of files -> sets that can be proven in parallel. Pure, names and sizes only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

PART_BYTES = 256 << 20
"""Bytes of one side per part. A proof task costs about 0.1 s, and reading this much takes several seconds."""


class File(Protocol):
    """A data file, unique in the table by its path."""

    @property
    def path(self) -> str: ...

    @property
    def bytes(self) -> int: ...


class ProvenUnit(Protocol):
    """Files that are proven together."""

    @property
    def files(self) -> Sequence[File]: ...


U = TypeVar("U", bound=ProvenUnit)


def unit_parts(
    base: U, candidate: U, part_of: Callable[[U, frozenset[str]], U], *, part_bytes: int = PART_BYTES
) -> Sequence[tuple[U, U]]:
    """Pairs of base and candidate part, of about equal size. A file of both sides is in the same part on both.

    `part_of` reduces a unit to the files at some paths, and what reading them needs. Files must not depend on rows of
    other files: then the fingerprints of the parts add up to that of the unit.
    """
    sizes = [{file.path: file.bytes for file in unit.files} for unit in (base, candidate)]
    parts = proof_parts(*sizes, part_bytes=part_bytes)
    if len(parts) == 1:
        return ((base, candidate),)
    return tuple((part_of(base, paths), part_of(candidate, paths)) for paths in parts)


def proof_parts(
    base: Mapping[str, int], candidate: Mapping[str, int], *, part_bytes: int = PART_BYTES
) -> Sequence[frozenset[str]]:
    """Sets of names, at least one, of about equal bytes. Each name of either side is in exactly one set.

    A name of both sides counts with the bytes of both, as both are read.
    """
    weights = {name: base.get(name, 0) + candidate.get(name, 0) for name in base.keys() | candidate.keys()}
    count = -(-max(sum(base.values()), sum(candidate.values())) // part_bytes)
    parts: list[list[str]] = [[] for _ in range(min(max(count, 1), max(len(weights), 1)))]
    loads = [0] * len(parts)
    for name in sorted(weights, key=lambda name: (-weights[name], name)):
        lightest = loads.index(min(loads))
        parts[lightest].append(name)
        loads[lightest] += weights[name]
    return tuple(map(frozenset, parts))
