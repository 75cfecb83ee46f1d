"""What Paimon wrote: the files of tests/golden/paimon, and the values their JSON spells as text."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot, parse_type
from nightkeep.formats.paimon.metadata.values import Value

GOLDEN = Path(__file__).parents[2] / "golden" / "paimon"


def read(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def read_json(name: str) -> Any:
    return json.loads(read(name))


def value(kind: PaimonType, text: str | None) -> Value:
    """The inverse of what Golden.java does with its texts."""
    if text is None:
        return None
    match kind.root:
        case TypeRoot.BOOLEAN:
            return text == "true"
        case TypeRoot.FLOAT:
            return float(np.float32(text))
        case TypeRoot.DOUBLE:
            return float(text)
        case TypeRoot.DECIMAL:
            return Decimal(text)
        case TypeRoot.CHAR | TypeRoot.VARCHAR:
            return text
        case TypeRoot.BINARY | TypeRoot.VARBINARY:
            return bytes.fromhex(text)
        case _:
            return int(text)


def _timestamps(precision: int) -> st.SearchStrategy[int]:
    """Nanoseconds, whole milliseconds where the type keeps no more."""
    step = 10**6 if precision <= 3 else 1
    return st.integers(-(2**63), 2**63 - 1).map(lambda millis: millis * 10**6 // step * step)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    whole = 10**precision - 1
    return st.integers(-whole, whole).map(
        lambda number: Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
    )


VALUES: dict[PaimonType, st.SearchStrategy[Any]] = {
    parse_type("BOOLEAN"): st.booleans(),
    parse_type("TINYINT"): st.integers(-(2**7), 2**7 - 1),
    parse_type("SMALLINT"): st.integers(-(2**15), 2**15 - 1),
    parse_type("INT"): st.integers(-(2**31), 2**31 - 1),
    parse_type("BIGINT"): st.integers(-(2**63), 2**63 - 1),
    parse_type("FLOAT"): st.floats(width=32, allow_nan=False),
    parse_type("DOUBLE"): st.floats(allow_nan=False),
    parse_type("DATE"): st.integers(-(2**31), 2**31 - 1),
    parse_type("TIME(3)"): st.integers(0, 86_399_999),
    parse_type("STRING"): st.text(),
    parse_type("CHAR(9)"): st.text(max_size=9),
    parse_type("BYTES"): st.binary(),
    parse_type("DECIMAL(18, 4)"): _decimals(18, 4),
    parse_type("DECIMAL(38, 10)"): _decimals(38, 10),
    parse_type("TIMESTAMP(3)"): _timestamps(3),
    parse_type("TIMESTAMP(9)"): _timestamps(9),
    parse_type("TIMESTAMP(6) WITH LOCAL TIME ZONE"): _timestamps(6),
}


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[PaimonType], list[Value]]:
    """Types, and as many values or nulls of them."""
    types = draw(st.lists(st.sampled_from(list(VALUES)), max_size=12))
    return types, [draw(st.none() | VALUES[kind]) for kind in types]
