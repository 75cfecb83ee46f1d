"""What is proven side by side: every file once, and the work dealt out evenly."""

from hypothesis import given
from hypothesis import strategies as st

from nightkeep.gate.proof_parts import proof_parts

FILES = st.dictionaries(st.sampled_from("abcdefghij"), st.integers(0, 100))


@given(FILES, FILES, st.integers(1, 200))
def test_every_file_is_in_one_part_and_no_part_has_more_than_its_share_and_a_file(
    base: dict[str, int], candidate: dict[str, int], part_bytes: int
) -> None:
    parts = proof_parts(base, candidate, part_bytes=part_bytes)
    assert sorted(name for part in parts for name in part) == sorted(base | candidate)
    larger = max(sum(base.values()), sum(candidate.values()))
    assert len(parts) == max(1, min(-(-larger // part_bytes), len(base | candidate)))
    loads = [sum(base.get(name, 0) + candidate.get(name, 0) for name in part) for part in parts]
    largest = max((base.get(name, 0) + candidate.get(name, 0) for name in base | candidate), default=0)
    assert max(loads) - min(loads) <= largest
