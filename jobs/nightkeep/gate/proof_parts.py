"""Two versions of a set of files -> sets that can be proven side by side. Pure, names and sizes only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

PART_BYTES = 256 << 20
"""Of one side. A proof task costs about 0.1 s besides its reading, which for this much takes several seconds."""


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
    """Parts of about equal size; a file that both sides have, with whatever deletes, is in one part on both.

    `part_of` keeps of a unit the files at some paths, and what their rows need. No row's place may depend on another
    file's rows: then fingerprints of parts add up to those of the unit.
    """
    sizes = [{file.path: file.bytes for file in unit.files} for unit in (base, candidate)]
    parts = proof_parts(*sizes, part_bytes=part_bytes)
    if len(parts) == 1:
        return ((base, candidate),)
    return tuple((part_of(base, paths), part_of(candidate, paths)) for paths in parts)


def proof_parts(
    base: Mapping[str, int], candidate: Mapping[str, int], *, part_bytes: int = PART_BYTES
) -> Sequence[frozenset[str]]:
    """Every name of either side in one set, by its bytes; a part at least, and together about equal in size.

    A name that both sides have is read on both, and weighs so.
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
