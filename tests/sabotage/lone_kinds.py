"""For each expectation of the check, a sabotage of a published version in which it fails and no other: by format.

Where the number of rows, a sum of hashes, missing rows and extra rows would fail together, the rows are such that the
others cannot tell: `equal_sums`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.drivers.paimon_values import Layout
from tests.formats.delta import laid_anew as delta_laid_anew
from tests.formats.delta.gate import test_sabotage as delta
from tests.formats.delta.hand_made import SCHEMA, HandMade
from tests.formats.delta.sabotage import Staged as DeltaStaged
from tests.formats.delta.sabotage import drop_a_row
from tests.formats.iceberg.runs import address, opened
from tests.formats.iceberg.sabotage import Staged as IcebergStaged
from tests.formats.iceberg.sabotage import rewritten
from tests.formats.paimon.appended import operate
from tests.formats.paimon.rewrite.append.test_delete import asleep
from tests.formats.paimon.upgrade import upgrade
from tests.sabotage.bases import Bases, Published
from tests.sabotage.blinding import (
    CHANGED,
    CHANGED_BY_KEY,
    CHANGES,
    COUNT,
    KEYS,
    ORDER,
    SOUND,
    STATISTICS,
    TOLD_ROWS,
    Blinding,
    Content,
    Rows,
)
from tests.sabotage.equal_sums import FIRST, NUMBER, SECOND, Hashed, doubles, signed
from tests.sabotage.kinds import every_kind

from nightkeep.model import Address, Operation, UnitKey
from nightkeep.records import RunDocument

DAY = "2026-11-01"
_DAYS_SINCE_1970 = (date.fromisoformat(DAY) - date(1970, 1, 1)).days
_NUMBERS = count()


@dataclass(frozen=True, slots=True)
class Lone:
    """`said`: what is done, for people. `asked`: what the check is asked beside the version."""

    said: str
    published: Callable[[Bases, Path], Published]
    asked: Mapping[str, Any] = field(default_factory=dict)


def _of_every_test(group: str, name: str) -> Lone:
    """A kind that the table of all kinds has as well."""

    def published(bases: Bases, folder: Path) -> Published:
        kind = next(each for each in every_kind() if (each.group, each.name) == (group, name))
        return kind.prepared(bases, folder)[1]()

    return Lone(name, published)


# ---- Paimon ----

NUMBERS = Hashed((NUMBER, FIRST, SECOND))
_COLUMNS = [("id", "BIGINT NOT NULL"), ("p", "BIGINT"), ("q", "BIGINT")]


def _columns(rows: Rows) -> dict[str, list[int]]:
    names = {"id": NUMBER, "p": FIRST, "q": SECOND}
    return {name: signed([row[of] for row in rows]) for name, of in names.items()}


def _paimon(
    layout: Layout,
    commits: Sequence[Rows],
    run: Callable[[Path], RunDocument],
    change: Callable[[pa.Table], pa.Table],
    bases: Bases,
    folder: Path,
) -> Published:
    table = folder / "t"
    bases.paimon_java.create(table, layout)
    for rows in commits:
        bases.paimon_java.write(table, [("+I", *values) for values in zip(*_columns(rows).values(), strict=True)])
    with asleep(table, lambda staged: staged.rewrite(change)):
        document = run(table)
    assert document.committed_version is not None, document.reason
    where = Address("paimon", str(table), "t")
    return Published(where, document.base_version, document.committed_version - 1, document.committed_version)


def _stored(rows: Rows, held: pa.Table) -> pa.Table:
    """As a file with keys has them, from the same sequence number on to the same."""
    ordered = sorted(rows, key=lambda row: row[NUMBER])
    numbers = held.column("_SEQUENCE_NUMBER").to_pylist()
    columns = _columns(ordered)
    system = {
        "_KEY_id": columns["id"],
        "_SEQUENCE_NUMBER": [min(numbers), *[max(numbers)] * (len(rows) - 1)],
        "_VALUE_KIND": [0] * len(rows),
    }
    return pa.table({name: (system | columns)[name] for name in held.column_names}, held.schema)


def _with_keys(after: Content, bases: Bases, folder: Path) -> Published:
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}
    single, rows = Blinding(NUMBERS).single, after(Blinding(NUMBERS))
    # Two commits with a row in common: a single file would be lifted as it is.
    commits = [[*single[:-1], {**single[-1], SECOND: 0}], single[-1:]]
    layout = Layout(_COLUMNS, ["id"], options=options)
    return _paimon(layout, commits, upgrade, lambda held: _stored(rows, held), bases, folder)


def _without_keys(
    options: Mapping[str, str], change: Callable[[pa.Table], pa.Table], bases: Bases, folder: Path
) -> Published:
    doubled = Blinding(NUMBERS).doubled
    pack = partial(operate, operation=Operation.OPTIMIZE, full=True)
    layout = Layout(_COLUMNS, options=options)
    return _paimon(layout, [doubled[:20], doubled[20:]], pack, change, bases, folder)


def _twice(held: pa.Table) -> pa.Table:
    return pa.table(_columns(CHANGED[COUNT][1](Blinding(NUMBERS))), held.schema)


def _reversed(held: pa.Table) -> pa.Table:
    return held[::-1]


_FIXED = {"bucket": "1", "bucket-key": "id", "write-only": "true"}
PAIMON: Mapping[str, Lone] = {
    COUNT: Lone(f"{CHANGED[COUNT][0]}, in a table without keys", partial(_without_keys, {"bucket": "-1"}, _twice)),
    **{name: Lone(said, partial(_with_keys, after)) for name, (said, after) in CHANGED_BY_KEY.items()},
    ORDER: Lone(
        "rows are written in reverse, in a table of fixed buckets without keys",
        partial(_without_keys, _FIXED, _reversed),
    ),
    TOLD_ROWS: _of_every_test("Paimon: upgrade", "miscount the version"),
    SOUND: _of_every_test("Paimon: upgrade", "write a retract"),
    STATISTICS: _of_every_test("Paimon: upgrade", "raise a minimum"),
    CHANGES: _of_every_test("Paimon: changelog of an upgrade", "an insert is missing"),
}


# ---- Delta ----

PRICED = Hashed((SECOND, FIRST, None, _DAYS_SINCE_1970))


def priced(rows: Rows) -> pa.Table:
    ids, prices = signed([row[SECOND] for row in rows]), doubles([row[FIRST] for row in rows])
    return pa.table({"id": ids, "price": prices, "note": [None] * len(rows)}, SCHEMA)


def _delta(before: Content, after: Content, bases: Bases, folder: Path) -> Published:
    made, blinding = HandMade(folder / "t"), Blinding(PRICED)
    made.append(DAY, priced(before(blinding)))
    table, run = delta.opened(made), delta_laid_anew.a_run()
    snapshot = table.snapshot()
    unit = snapshot.by_key[UnitKey(f"day={DAY}")]
    candidate = table.commits.stage(snapshot, [delta_laid_anew.laid_anew(table, unit, run)], run)
    staged = DeltaStaged(made, candidate)
    staged.rewrite(lambda _: priced(after(blinding)))
    with staged.adds() as (add,):
        # A log that counts rows would tell of another number of them.
        del add["stats"]
    assert table.commits.commit(candidate)
    return Published(Address("delta", str(made.folder), "t"), None, snapshot.version, candidate.version)


def _lost_beyond_the_budget(bases: Bases, folder: Path) -> Published:
    made = delta.filled(HandMade(folder / "t"))
    candidate = delta.rewritten(made)
    drop_a_row(DeltaStaged(made, candidate))
    assert delta.opened(made).commits.commit(candidate)
    return Published(Address("delta", str(made.folder), "t"), None, candidate.parent_version, candidate.version)


def _of_numbers(publish: Callable[[Content, Content, Bases, Path], Published]) -> Mapping[str, Lone]:
    said, twice = CHANGED_BY_KEY[KEYS]
    alone = {
        name: Lone(said, partial(publish, lambda b: b.doubled, after), {"join_budget": 1 << 40})
        for name, (said, after) in CHANGED.items()
    }
    return {**alone, KEYS: Lone(said, partial(publish, lambda b: b.single, twice), {"keys": ("id",)})}


DELTA: Mapping[str, Lone] = {
    **_of_numbers(_delta),
    TOLD_ROWS: Lone("drop a row that the byte budget leaves out", _lost_beyond_the_budget, {"byte_budget": 1}),
    STATISTICS: _of_every_test("Delta: rows rewritten", "raise a minimum"),
}


# ---- Iceberg ----


def _iceberg(before: Content, after: Content, bases: Bases, folder: Path) -> Published:
    table, blinding = bases.warehouse(f"alone{next(_NUMBERS)}").table("shop.numbers"), Blinding(NUMBERS)
    bases.iceberg_java.create(table, [("id", "long"), ("p", "long"), ("q", "long")])
    columns = _columns(before(blinding)).values()
    bases.iceberg_java.append(table, [list(values) for values in zip(*columns, strict=True)])
    found = opened(table)
    (unit,) = found.snapshot().units
    _, candidate = rewritten(found, [unit.key])
    staged, rows = IcebergStaged(found, candidate, unit.key), after(blinding)
    staged.rewrite(lambda held: pa.table(_columns(rows), held.schema))
    staged.say(lambda told: told["summary"].update({"total-records": str(len(rows))}))
    assert found.commits.commit(candidate)
    return Published(address(table), None, candidate.parent_version, candidate.version)


ICEBERG: Mapping[str, Lone] = {
    **_of_numbers(_iceberg),
    TOLD_ROWS: _of_every_test("Iceberg: rows rewritten", "miscount the total"),
    SOUND: _of_every_test("Iceberg: rows rewritten", "write rows of another partition"),
    STATISTICS: _of_every_test("Iceberg: rows rewritten", "raise a minimum"),
}


BY_FORMAT: Mapping[str, Mapping[str, Lone]] = {"paimon": PAIMON, "delta": DELTA, "iceberg": ICEBERG}
NEVER: Mapping[str, Sequence[str]] = {"paimon": (), "delta": (ORDER, SOUND, CHANGES), "iceberg": (ORDER, CHANGES)}
"""Expectations that no table of the format could fail, which the report must say."""
