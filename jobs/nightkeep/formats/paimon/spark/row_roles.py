"""Stored rows of a key, as an array in Spark -> what each of them is to the row that the merge engine makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.formats.paimon.metadata.merge_engine import MergeEngine, MergeRules
from nightkeep.formats.paimon.spark.data_files import LIVE_KINDS
from nightkeep.spark.view import comparable

_DELETE = 3


def sequences(rules: MergeRules, columns: Mapping[str, tuple[str, T.DataType]]) -> list[Column]:
    """The sequence of a row in each group, as a struct that Spark orders as Paimon does, null first; null where all
    its fields are. `columns` has the name and the type in Spark of each column of the table."""
    found = []
    for n, group in enumerate(rules.groups):
        fields = [(F.col(columns[name][0]), columns[name][1]) for name in group.fields]
        # Spark treats 0.0 and -0.0 as equal. As texts, the negative one comes first, as in Java.
        ordered = F.struct(*(part for value, kind in fields for part in (value, comparable(value, kind))))
        there = reduce(or_, (value.isNotNull() for value, _ in fields))
        found.append(F.when(there, ordered).alias(f"sequence{n}"))
    return found


def with_roles(rows: Column, rules: MergeRules, sequence_types: Sequence[T.DataType]) -> Column:
    """`rows`, in their order, each with `base`: its values replace all before it; `removes`: it is such a base and
    leaves no row; `counts`: columns without a group take it; and `newer0`, ...: whether it is not older than what its
    group has, null where the group skips it. Each row has a `kind` and the columns of `sequences`."""
    groups = range(len(rules.groups))
    entry = T.StructType(
        [
            *(T.StructField(name, T.BooleanType()) for name in ("base", "removes", "counts")),
            *(T.StructField(f"newer{n}", T.BooleanType()) for n in groups),
        ]
    )
    none = [F.lit(None).cast(kind).alias(f"sequence{n}") for n, kind in enumerate(sequence_types)]
    started = F.struct(
        F.array().cast(T.ArrayType(entry)).alias("roles"),
        *none,
        F.lit(False).alias("started"),  # noqa: FBT003
    )
    roles = F.aggregate(rows, started, lambda held, row: _next(held, row, rules), lambda held: held["roles"])
    return F.zip_with(rows, roles, lambda row, role: F.struct(row.alias("row"), role.alias("role")))


def is_retract(row: Column) -> Column:
    """Whether a row is of kind -U or -D."""
    return ~row["kind"].isin(*LIVE_KINDS)


def _next(held: Column, row: Column, rules: MergeRules) -> Column:
    updates = rules.engine is MergeEngine.PARTIAL_UPDATE
    # A partial update starts from the values of its first row, even if that is a retract.
    first = is_retract(row) & ~held["started"] & F.lit(updates)
    counts = ~is_retract(row) if rules.ignores_deletes else F.lit(True)  # noqa: FBT003
    before = [F.when(first, row[f"sequence{n}"]).otherwise(held[f"sequence{n}"]) for n in range(len(rules.groups))]
    newer = [
        F.when(counts & row[f"sequence{n}"].isNotNull(), old.isNull() | (row[f"sequence{n}"] >= old))
        for n, old in enumerate(before)
    ]
    removing = [F.coalesce(newer[n], F.lit(False)) for n, g in enumerate(rules.groups) if g.removes]  # noqa: FBT003
    removes = (row["kind"] == _DELETE) & reduce(or_, removing, F.lit(rules.removes_on_delete))
    role = F.struct(
        (first | removes).alias("base"),
        removes.alias("removes"),
        (~first & ~removes & (~is_retract(row) | F.lit(not updates))).alias("counts"),
        *(F.when(~removes, each).alias(f"newer{n}") for n, each in enumerate(newer)),
    )
    after = [
        F.when(removes | F.coalesce(newer[n], F.lit(False)), row[f"sequence{n}"]).otherwise(old)  # noqa: FBT003
        for n, old in enumerate(before)
    ]
    return F.struct(
        F.concat(held["roles"], F.array(role)).alias("roles"),
        *(each.alias(f"sequence{n}") for n, each in enumerate(after)),
        F.lit(True).alias("started"),  # noqa: FBT003
    )
