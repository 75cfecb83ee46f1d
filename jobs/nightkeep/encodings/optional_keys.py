"""Parquet footers whose maps have optional keys -> footers that declare these maps as lists of entries.

Paimon Java before 0.9 writes every map so, and no null key. Arrow refuses such a footer. Calling the keys required
would change what the levels in pages mean; a list of entries has the same levels, and Arrow shows nulls among its keys.
"""

from __future__ import annotations

from nightkeep.encodings.parquet_footer import I32, STRUCT, Fields, structs

# parquet.thrift. FileMetaData: schema. SchemaElement: repetition_type, num_children, converted_type, logicalType.
_SCHEMA, _REPETITION, _CHILDREN, _CONVERTED, _LOGICAL = 2, 3, 5, 6, 10
_OPTIONAL, _ENTRY = (I32, 1), (I32, 2)
# ConvertedType: MAP, MAP_KEY_VALUE, LIST. LogicalType: MAP, LIST.
_MAPS, _LIST = ((I32, 1), (I32, 2)), (I32, 3)
_LOGICAL_MAP, _LOGICAL_LIST = 2, 3


def declare_lists(footer: Fields) -> None:
    """Declare maps with optional keys as lists of their entries, a key and a value."""
    elements = structs(footer, _SCHEMA)
    # A schema lists each group before its children: a map, its entry, its key.
    triples = zip(elements, elements[1:], elements[2:], strict=False)
    found = [(each, entry) for each, entry, key in triples if _is_map(each, entry) and _is_optional(key)]
    for each, entry in found:
        each |= {_CONVERTED: _LIST, _LOGICAL: (STRUCT, {_LOGICAL_LIST: (STRUCT, {})})}
        entry.pop(_CONVERTED, None)
        entry.pop(_LOGICAL, None)


def _is_map(element: Fields, entry: Fields) -> bool:
    _, logical = element.get(_LOGICAL, (STRUCT, {}))
    is_called_so = _LOGICAL_MAP in logical or element.get(_CONVERTED) in _MAPS
    is_group_of_one, is_pair = element.get(_CHILDREN) == (I32, 1), entry.get(_CHILDREN) == _ENTRY
    return is_called_so and is_group_of_one and is_pair


def _is_optional(key: Fields) -> bool:
    return key.get(_REPETITION) == _OPTIONAL
