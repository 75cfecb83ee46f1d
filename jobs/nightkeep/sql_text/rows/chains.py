"""Sums and products of integers -> whether Spark computes them in another order than they are written in.

The value would be the same, but not the overflow on the way to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import pyarrow as pa

from nightkeep.sql_text.rows.condition import Value
from nightkeep.sql_text.rows.expression import (
    Arithmetic,
    Concatenated,
    Converted,
    Expression,
    FirstKnown,
    Negated,
    Operator,
)


def is_reordered(chain: Arithmetic) -> bool:
    """Whether Spark's optimizer puts the constants of a chain of + or * behind its other parts, which are then taken
    from left to right (ReorderAssociativeOperator of Spark 4.1)."""
    if chain.operator not in (Operator.PLUS, Operator.TIMES) or not pa.types.is_integer(chain.type):
        return False
    parts = list(_parts(chain, chain))
    constants = [part for part in parts if _is_constant(part)]
    others = [part for part in parts if not _is_constant(part)]
    if not constants or not others:
        return False

    def joined(left: Expression, right: Expression) -> Expression:
        return Arithmetic(chain.operator, left, right, chain.type)

    taken = joined(reduce(joined, others), reduce(joined, constants))
    return len(parts) > 2 and taken != chain


def _parts(chain: Arithmetic, part: Expression) -> Iterator[Expression]:
    if isinstance(part, Arithmetic) and (part.operator, part.type) == (chain.operator, chain.type):
        yield from _parts(chain, part.left)
        yield from _parts(chain, part.right)
    else:
        yield part


def _is_constant(part: Expression) -> bool:
    match part:
        case Value():
            return True
        case Negated(value=inner) | Converted(value=inner):
            return _is_constant(inner)
        case Arithmetic(left=left, right=right):
            return _is_constant(left) and _is_constant(right)
        case FirstKnown(values=values) | Concatenated(values=values):
            return all(map(_is_constant, values))
        case _:
            return False
