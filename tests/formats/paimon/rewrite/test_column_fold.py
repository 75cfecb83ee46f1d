"""The value of one column while rows come, also such that belong before what a sequence group has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function
from nightkeep.formats.paimon.rewrite.column_fold import ColumnFold, column_fold
from nightkeep.formats.paimon.rewrite.joined import Joined

KEY = np.zeros(1, np.int64)
TEXTS = ["a", "b,a", " ", None, "c"]


def fold_of(function: Function, *, distinct: bool = False) -> ColumnFold:
    column = pa.chunked_array([pa.array(TEXTS)])
    return column_fold(FieldRule(function, distinct=distinct), "t", column, 1)


def row(text: str | None) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([TEXTS.index(text)])


def test_older_texts_come_before_what_a_group_has() -> None:
    fold = fold_of(Function.LISTAGG)
    assert isinstance(fold, Joined)
    fold.add(KEY, row("a"))
    fold.add_older(KEY, row("c"))
    fold.add(KEY, row(" "))
    fold.add_older(KEY, row("b,a"))
    assert fold.values(KEY).to_pylist() == ["b,a,c,a"]


def test_distinct_parts_are_distinguished_from_what_comes_before_them() -> None:
    fold = fold_of(Function.LISTAGG, distinct=True)
    fold.add(KEY, row("a"))
    fold.add(KEY, row("b,a"))
    fold.add(KEY, row("c"))
    assert fold.values(KEY).to_pylist() == ["a,b,c"]


def test_a_text_that_replaces_forgets_what_came_before() -> None:
    fold = fold_of(Function.LISTAGG)
    fold.add(KEY, row("a"))
    fold.replace(KEY, row(" "))
    assert fold.values(KEY).to_pylist() == [" "]
    fold.add(KEY, row("c"))
    assert fold.values(KEY).to_pylist() == ["c"]


def test_the_first_value_is_that_of_the_oldest_row_of_a_group() -> None:
    fold = fold_of(Function.FIRST_VALUE)
    fold.add(KEY, row("a"))
    fold.add(KEY, row("c"))
    assert fold.values(KEY).to_pylist() == ["a"]
    fold.add_older(KEY, row("b,a"))
    assert fold.values(KEY).to_pylist() == ["b,a"]


@pytest.mark.parametrize("function", [Function.LISTAGG, Function.FIRST_VALUE, Function.MAX])
def test_a_function_without_inverse_names_its_column(function: Function) -> None:
    with pytest.raises(ValueError, match=f"for column t, whose function {function} cannot take a value back"):
        fold_of(function).retract(KEY, row("a"))
