"""Places on a line against the order of the values, and how evenly they lie there."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.kernels.axis import even_axis

BYTES = st.one_of(
    st.binary(max_size=12),
    st.tuples(st.sampled_from([b"", b"common-", b"common-prefix-", b"commons"]), st.binary(max_size=12)).map(b"".join),
    st.integers(0, 999).map(lambda number: f"https://host-{number % 3}.example/{number:012}".encode()),
)
LISTS = st.lists(BYTES, min_size=1, max_size=40)


@settings(max_examples=examples(200))
@given(LISTS, LISTS)
def test_places_never_descend(bounds: list[bytes], values: list[bytes]) -> None:
    ends, ascending = pa.array(bounds), pa.array(sorted(values + bounds))
    assert (np.diff(even_axis(ends, ends).places(ascending)) >= 0).all()


def spacing(values: list[bytes]) -> tuple[float, float]:
    """The shortest and the longest way from one value to the next, as shares of the whole."""
    places = even_axis(pa.array(values), pa.array(values)).places(pa.array(values))
    steps = np.diff(places) / (places[-1] - places[0])
    return float(steps.min()), float(steps.max())


def test_values_after_a_common_prefix_lie_evenly() -> None:
    low, high = spacing([b"a-common-prefix-%c" % byte for byte in range(100, 200)])
    assert 0.009 < low <= high < 0.011


def test_each_of_several_prefixes_has_its_own_stretch() -> None:
    hosts = [b"https://one.example/", b"https://two.example/"]
    low, high = spacing([host + b"item-%c" % byte for host in hosts for byte in range(100, 200)])
    assert 0 <= low <= high < 0.011


def test_a_stray_does_not_squeeze_the_rest() -> None:
    _, high = spacing([b"a", *(b"https://one.example/item-%c" % byte for byte in range(100, 200))])
    assert high < 0.011


def test_axes_of_nothing() -> None:
    for kind in (pa.string(), pa.binary(), pa.int64()):
        none = pa.array([], kind)
        axis = even_axis(none, none)
        assert len(axis.places(none)) == 0
        assert axis.places(pa.nulls(2, kind)).tolist() == [0, 0]
