"""Two versions of a set of files -> sets that can be proven side by side. Pure, names and sizes only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

PART_BYTES = 256 << 20
"""Of one side. A proof task costs about 0.1 s besides its reading, which for this much takes several seconds."""


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
