"""Options of a read: what is understood, and what is refused before anything is read."""

import pyarrow as pa
import pytest

from nightkeep.errors import UsageError
from nightkeep.protocol.reading import ReadView
from nightkeep.reading.request import ChangesSince, Incremental, ReadRequest, request_of, shown_rows, start_of

COLUMNS = pa.schema([("k", pa.int32()), ("v", pa.string()), ("day", pa.date32())])


def test_columns_come_in_the_order_asked_for() -> None:
    for columns in ("v, k", ["v", "k"], ("v", "k")):
        request = request_of(columns, None, None, None, "raw")
        assert shown_rows(request, COLUMNS).schema.names == ["v", "k"]
        assert request.view is ReadView.RAW
    assert shown_rows(ReadRequest(), COLUMNS).schema == COLUMNS


def test_a_condition_may_name_columns_that_are_not_shown() -> None:
    shown = shown_rows(request_of("v", "k > 3 AND day IS NULL", None, None, None), COLUMNS)
    assert (shown.schema.names, shown.tested) == (["v"], ("day", "k"))


@pytest.mark.parametrize("columns", [["gone"], [], ["k", "k"], "k,"])
def test_other_columns_are_refused(columns: list[str]) -> None:
    with pytest.raises(UsageError, match="columns: expected some of k, v, day, each once, found"):
        shown_rows(request_of(columns, None, None, None, None), COLUMNS)


def test_other_options_are_refused() -> None:
    with pytest.raises(UsageError, match="view: expected one of raw, merge-on-read, read-optimized, found 'newest'"):
        request_of(None, None, None, None, "newest")
    with pytest.raises(UsageError, match="version and tag: expected one of the two, found 3 and 'kept'"):
        request_of(None, None, 3, "kept", None)
    with pytest.raises(UsageError, match=r"expected a column of the table \(k, v, day\), found gone"):
        shown_rows(ReadRequest(where="gone = 1"), COLUMNS)


def test_an_incremental_read_names_what_it_shows_and_where_it_starts() -> None:
    assert start_of(None, None) is None
    assert start_of("changelog", 3) == ChangesSince(Incremental.CHANGELOG, 3)
    with pytest.raises(UsageError, match="incremental: expected it with since, found none"):
        start_of(None, 3)
