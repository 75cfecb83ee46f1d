"""Texts -> values, and values -> texts, as Paimon Java converts them when a column's type was changed.

What Java does not take raises pa.ArrowInvalid. So do a few forms that it takes: numbers with blanks around them,
hexadecimal ones, and decimals with an exponent.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.metadata.types import MAX_LENGTH, PaimonType, TypeRoot

_WHOLE: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]*)$"
_FLOATING: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_NAMED: Final = {"NaN": "nan", "+NaN": "nan", "-NaN": "nan"} | {
    sign + "Infinity": sign.strip("+") + "inf" for sign in ("", "+", "-")
}
_DIGITS: Final = 38
_PLAIN: Final = rf"^[+-]?[0-9]{{1,{_DIGITS}}}(\.[0-9]{{1,{_DIGITS}}})?$"
_TRUE: Final = ("t", "true", "y", "yes", "1")
_FALSE: Final = ("f", "false", "n", "no", "0")


def cut_and_filled(texts: Any, kind: PaimonType) -> Any:
    """At most the type's number of characters (code points); CHAR is filled up with blanks."""
    texts.validate(full=True)
    length = kind.length or 0
    if length < MAX_LENGTH:
        texts = pc.utf8_slice_codeunits(texts, 0, length)
    return pc.utf8_rpad(texts, length) if kind.root is TypeRoot.CHAR else texts


def text_of_decimal(values: Any, scale: int) -> Any:
    """Digits with a point and no exponent (BigDecimal.toPlainString)."""
    # The same bits without a scale: the digits.
    kind: Any = pa.decimal128(38, 0)
    digits: Any = pa.chunked_array([chunk.view(kind) for chunk in values.chunks], kind)
    signs = pc.if_else(pc.less(digits, pa.scalar(0, digits.type)), "-", "")
    texts = pc.utf8_lpad(pc.abs(digits).cast(pa.string()), scale + 1, "0")
    if not scale:
        return pc.binary_join_element_wise(signs, texts, "")
    whole, rest = pc.utf8_slice_codeunits(texts, 0, -scale), pc.utf8_slice_codeunits(texts, -scale, None)
    return pc.binary_join_element_wise(signs, whole, ".", rest, "")


def integer_of_text(texts: Any, kind: Any) -> Any:
    """What follows a point is digits, and is cut off."""
    _require(texts, _WHOLE, kind)
    whole = pc.replace_substring_regex(pc.replace_substring_regex(texts, r"\..*$", ""), r"^\+", "")
    return pc.replace_substring_regex(whole, "^-?$", "0").cast(kind)


def floating_of_text(texts: Any, kind: Any) -> Any:
    names = pa.array(list(_NAMED))
    places = pc.index_in(texts, names)
    is_named = pc.is_valid(places)
    plain = pc.if_else(is_named, "0", texts)
    _require(plain, _FLOATING, kind)
    named = pa.array([float(value) for value in _NAMED.values()], kind).take(places)
    return pc.if_else(is_named, named, pc.replace_substring_regex(plain, r"^\+", "").cast(kind))


def decimal_of_text(texts: Any) -> Any:
    kind = pa.decimal256(2 * _DIGITS, _DIGITS)
    _require(texts, _PLAIN, kind)
    return pc.replace_substring_regex(texts, r"^\+", "").cast(kind)


def boolean_of_text(texts: Any) -> Any:
    lower = pc.ascii_lower(texts)
    is_true = pc.is_in(lower, pa.array(_TRUE))
    known = pc.or_(is_true, pc.is_in(lower, pa.array(_FALSE)))
    _require_all(texts, known, pa.bool_())
    return pc.if_else(pc.is_valid(texts), is_true, pa.scalar(None, pa.bool_()))


def _require(texts: Any, pattern: str, kind: Any) -> None:
    _require_all(texts, pc.match_substring_regex(texts, pattern), kind)


def _require_all(texts: Any, known: Any, kind: Any) -> None:
    wrong = texts.filter(pc.and_(pc.is_valid(texts), pc.invert(known)))
    if len(wrong):
        raise pa.ArrowInvalid(f"the text {wrong[0].as_py()!r}, which is no {kind}")
