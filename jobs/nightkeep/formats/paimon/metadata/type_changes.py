"""Two types of one column -> whether values of the older one are kept as they are under the newer one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot


def evolves(old: PaimonType, new: PaimonType) -> pa.DataType | None:
    """The Arrow type to cast to for a file written when the column was `old`; the column is now `new`. None if unsafe.

    `old.arrow` values cast with pyarrow (safe=True) to the result are the values that Paimon's readers show. Only
    lossless changes are listed; Paimon allows many more (CastExecutors).
    """
    if not (old.is_primitive and new.is_primitive) or (old.nullable and not new.nullable):
        return None
    return new.arrow if _widens(old, new) else None


def is_converted(old: PaimonType, new: PaimonType) -> bool:
    """Whether readers convert values of a column that was `old` and is now `new` in a way that is not handled.

    Java casts between types of one root as well: it cuts a text to a shorter VARCHAR, fills up a longer CHAR, and
    rounds to a smaller scale (CastExecutors). What nested types have within them is compared on its own.
    """
    if old.root is not new.root:
        return evolves(old, new) is None
    parameters = ((kind.precision, kind.scale, kind.length) for kind in (old, new))
    return old.is_primitive and len(set(parameters)) > 1 and not _widens(old, new)


# Digits that hold every value of the integer type.
_INTEGER_DIGITS: Final[Mapping[TypeRoot, int]] = {
    TypeRoot.TINYINT: 3,
    TypeRoot.SMALLINT: 5,
    TypeRoot.INT: 10,
    TypeRoot.BIGINT: 19,
}


def _widens(old: PaimonType, new: PaimonType) -> bool:
    if old.root in _INTEGER_DIGITS:
        return _integer_widens(old, new)
    rule = _WIDENING.get((old.root, new.root))
    return rule is not None and rule(old, new)


def _integer_widens(old: PaimonType, new: PaimonType) -> bool:
    digits = _INTEGER_DIGITS[old.root]
    if new.root is TypeRoot.DECIMAL:
        return _whole_digits(new) >= digits
    return _INTEGER_DIGITS.get(new.root, 0) >= digits


def _whole_digits(kind: PaimonType) -> int:
    return (kind.precision or 0) - (kind.scale or 0)


def _always(old: PaimonType, new: PaimonType) -> bool:
    return True


def _not_shorter(old: PaimonType, new: PaimonType) -> bool:
    return (new.length or 0) >= (old.length or 0)


def _same_length(old: PaimonType, new: PaimonType) -> bool:
    # A longer CHAR or BINARY pads on reading (BinaryStringUtils), which a cast does not.
    return new.length == old.length


def _not_coarser(old: PaimonType, new: PaimonType) -> bool:
    return (new.precision or 0) >= (old.precision or 0)


def _wider_decimal(old: PaimonType, new: PaimonType) -> bool:
    return (new.scale or 0) >= (old.scale or 0) and _whole_digits(new) >= _whole_digits(old)


_Rule = Callable[[PaimonType, PaimonType], bool]
_WIDENING: Final[Mapping[tuple[TypeRoot, TypeRoot], _Rule]] = {
    **{(root, root): _always for root in (TypeRoot.BOOLEAN, TypeRoot.FLOAT, TypeRoot.DOUBLE, TypeRoot.DATE)},
    (TypeRoot.FLOAT, TypeRoot.DOUBLE): _always,
    (TypeRoot.DECIMAL, TypeRoot.DECIMAL): _wider_decimal,
    (TypeRoot.CHAR, TypeRoot.CHAR): _same_length,
    (TypeRoot.CHAR, TypeRoot.VARCHAR): _not_shorter,
    (TypeRoot.VARCHAR, TypeRoot.VARCHAR): _not_shorter,
    (TypeRoot.BINARY, TypeRoot.BINARY): _same_length,
    (TypeRoot.BINARY, TypeRoot.VARBINARY): _not_shorter,
    (TypeRoot.VARBINARY, TypeRoot.VARBINARY): _not_shorter,
    (TypeRoot.TIME, TypeRoot.TIME): _not_coarser,
    (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP): _not_coarser,
    (TypeRoot.TIMESTAMP_LTZ, TypeRoot.TIMESTAMP_LTZ): _not_coarser,
}
