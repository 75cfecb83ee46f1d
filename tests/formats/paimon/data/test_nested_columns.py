"""Nested values under a newer schema, against a twin that maps one value at a time."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.encodings.orc_times import refuse_fractions_before_1970
from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.data.nested_columns import absent, conformed
from nightkeep.formats.paimon.data.orc_types import orc_field
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot, parse_type


def row(*fields: tuple[int, str, Any]) -> dict[str, Any]:
    return {"type": "ROW", "fields": [{"id": number, "name": name, "type": kind} for number, name, kind in fields]}


OLD = parse_type(
    {
        "type": "ARRAY",
        "element": row(
            (1, "a", "INT"),
            (2, "gone", "STRING"),
            (3, "c", "CHAR(3)"),
            (4, "m", {"type": "MAP", "key": "STRING", "value": row((5, "v", "FLOAT"))}),
        ),
    }
)
NEW = parse_type(
    {
        "type": "ARRAY",
        "element": row(
            (4, "map", {"type": "MAP", "key": "STRING", "value": row((5, "w", "DOUBLE"), (6, "more", "INT"))}),
            (7, "gone", "STRING"),
            (1, "b", "BIGINT"),
            (3, "c", "CHAR(3)"),
        ),
    }
)
VALUES = st.none() | st.lists(
    st.none()
    | st.fixed_dictionaries(
        {
            "a": st.none() | st.integers(-5, 5),
            "gone": st.sampled_from([None, "x"]),
            "c": st.sampled_from([None, "c  ", " c", ""]),
            "m": st.none()
            | st.dictionaries(
                st.sampled_from("pqr"), st.none() | st.fixed_dictionaries({"v": st.sampled_from([None, 1.5, -0.0])})
            ).map(lambda entries: [*entries.items()]),
        }
    ),
    max_size=3,
)


def twin(value: Any, old: PaimonType, new: PaimonType) -> Any:
    if value is None:
        return None
    match new.root:
        case TypeRoot.ROW:
            names = {field.id: (field.name, field.type) for field in old.children}
            return {
                field.name: twin(value[names[field.id][0]], names[field.id][1], field.type)
                if field.id in names
                else None
                for field in new.children
            }
        case TypeRoot.ARRAY:
            return [twin(each, old.children[0].type, new.children[0].type) for each in value]
        case TypeRoot.MAP:
            return [(key, twin(each, old.children[1].type, new.children[1].type)) for key, each in value]
        case TypeRoot.CHAR:
            return value.rstrip(" ")
    return value


@given(st.lists(VALUES, max_size=6), st.integers(0, 2))
def test_fields_are_mapped_by_id_at_any_depth(values: list[Any], skipped: int) -> None:
    kind: Any = OLD.arrow
    column = pa.chunked_array([pa.array(values, kind).slice(skipped), pa.array(values[:1], kind)], kind)

    found = conformed(column, OLD, NEW, pads_chars=True)

    found.validate(full=True)
    assert found.type == NEW.arrow
    assert repr(found.to_pylist()) == repr([twin(each, OLD, NEW) for each in (*values[skipped:], *values[:1])])


def test_a_narrower_field_is_refused_and_a_missing_one_is_an_error() -> None:
    old, new = parse_type(row((1, "a", "STRING"))), parse_type(row((1, "a", "INT")))
    held: Any = pa.chunked_array([pa.array([{"a": "1"}])])
    with pytest.raises(RefusedTable, match="values were written as STRING and are now INT"):
        conformed(held, old, new, pads_chars=False)
    with pytest.raises(KeyError, match="a"):
        conformed(pa.chunked_array([pa.array([{"other": "1"}])]), old, old, pads_chars=False)


def test_a_column_that_a_file_lacks_is_null() -> None:
    assert absent(2, NEW.arrow).to_pylist() == [None, None]


def test_parts_of_orc_columns_have_the_ids_of_paimon() -> None:
    kind = parse_type({"type": "MAP", "key": "STRING", "value": {"type": "ARRAY", "element": row((9, "t", "TIME(3)"))}})
    field = orc_field("m", kind, 3)
    value = field.type.item_field
    element = value.type.value_field

    def number(part: Any) -> int:
        return int(part.metadata[b"paimon.id"])

    # SpecialFields.java: 536870911 and 1024 times the id of the column, and the depth.
    assert (number(field), number(field.type.key_field), number(value)) == (3, 536870911 - 3073, 536870911 + 3073)
    assert (number(element), number(element.type.field(0))) == (536870911 + 3074, 9)
    assert element.type.field(0).type == pa.int32()


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.timestamp("ms")), pa.map_(pa.string(), pa.timestamp("ms")), pa.struct([("at", pa.timestamp("ms"))])],
)
def test_fractions_before_1970_are_found_within_nested_values(kind: pa.DataType) -> None:
    def column(at: int) -> Any:
        value: Any = {"at": at} if pa.types.is_struct(kind) else [("a", at)] if pa.types.is_map(kind) else [at]
        return pa.chunked_array([pa.array([None, value], kind)])  # type: ignore[call-overload]

    refuse_fractions_before_1970("v", column(-1000))
    refuse_fractions_before_1970("v", column(1))
    with pytest.raises(RefusedTable, match="column v: times before 1970"):
        refuse_fractions_before_1970("v", column(-1001))


ENTRIES = [[{"key": "p", "value": 1}, {"key": "q", "value": None}], None, [], [{"key": "r", "value": 3}]]


def test_a_map_may_come_as_its_entries() -> None:
    written = parse_type({"type": "MAP", "key": "STRING", "value": "INT"})
    wanted = parse_type({"type": "MAP", "key": "STRING", "value": "BIGINT"})
    lists = pa.chunked_array([pa.array(ENTRIES, pa.list_(pa.struct({"key": pa.string(), "value": pa.int32()})))])
    shown = conformed(lists.slice(1), written, wanted, pads_chars=False)
    shown.validate(full=True)
    assert shown.type == wanted.arrow
    assert shown.to_pylist() == [None, [], [("r", 3)]]


def test_an_entry_without_a_key_is_named() -> None:
    kind = parse_type({"type": "MULTISET", "element": "STRING"})
    lists = pa.chunked_array([pa.array([[{"key": None, "value": 1}]])])
    with pytest.raises(pa.ArrowInvalid, match="1 null keys of maps"):
        conformed(lists, kind, kind, pads_chars=False)
