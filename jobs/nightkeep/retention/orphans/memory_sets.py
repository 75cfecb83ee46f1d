"""Names of candidates and live files -> orphans, compared as columns in the memory of one process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import polars as pl
import pyarrow as pa

from nightkeep.protocol.table_files import OpenFiles, OpenRoot, SomeSource, TableFiles
from nightkeep.retention.orphans.classify import (
    NESTED,
    bare,
    classify,
    foreign,
    stored,
    unkept,
    unless_of_others,
    walk_folders,
)
from nightkeep.retention.orphans.sets import (
    EXAMPLES,
    NO_FILES,
    ORPHANS,
    FileFault,
    FileTotals,
    SetCounts,
    TooManyNames,
    Witness,
)
from nightkeep.storage import ListedFile

_BATCH: Final = 10_000
_ASKED: Final = 100
"""How many files outside of all places are looked up. A single one shows a wrong spelling, and a table may have
imported a million files from elsewhere."""


class MemorySets:
    """The Sets of one process. Raises TooManyNames above `limit` names, listed and live together: each takes about 300
    bytes while names are compared."""

    def __init__(self, *, limit: int = 4_000_000) -> None:
        self._limit = limit
        self._table_files: TableFiles | None = None
        self._complete = False
        self._listed: list[pl.DataFrame] = []
        self._nested: set[tuple[int, str]] = set()
        self._unreadable = self._spared = NO_FILES
        self._wanted: list[pl.DataFrame] = []
        self._live: list[pl.DataFrame] = []
        self._read: set[SomeSource] = set()
        self._witness = Witness()
        self._doubted: frozenset[str] = frozenset()
        self._orphans = _NO_ORPHANS
        self._held = 0

    @classmethod
    def of_part(
        cls,
        table_files: TableFiles,
        *,
        listed: pl.DataFrame,
        wanted: pl.DataFrame,
        live: pl.DataFrame,
        nested: Iterable[tuple[int, str]],
        complete: bool,
        doubted: frozenset[str],
    ) -> MemorySets:
        """Sets of a part of all names. Every live name that can match a candidate of the part must be in the part too.

        `listed` has the columns that `classify` returns, without `nested`. `nested` are the folders of other tables, as
        (place, folder). Files of the `doubted` kinds are no orphans.
        """
        sets = cls()
        sets._table_files, sets._complete, sets._doubted = table_files, complete, doubted
        sets._listed, sets._wanted, sets._live = [listed], [wanted] if len(wanted) else [], [live]
        sets._nested = {*nested}
        return sets

    def list(self, table_files: TableFiles) -> None:
        self._table_files, self._complete = table_files, True
        for folder in walk_folders(table_files):
            for batch in table_files.storage.walk(folder):
                self._add(listed_files(batch, table_files))

    def reached(self, table: OpenFiles, roots: Sequence[OpenRoot]) -> None:
        self._table_files = table.table_files()
        for files in _reach(table, roots, set(), Witness()):
            self._wanted.append(files)
            self._hold(len(files))

    def live(self, table: OpenFiles, roots: Sequence[OpenRoot], *, expected: bool) -> None:
        for files in _reach(table, roots, self._read, self._witness):
            self._live.append(files.with_columns(pl.col("needed") & pl.lit(expected)))
            self._hold(len(files))

    def settle(self, *, cutoff_ms: int | None, named: tuple[str, ...] = ()) -> SetCounts:
        live = pl.concat([_NO_LIVE, *self._live])
        self._look_up(live)
        listed = pl.concat([_no_files(self._listed), *self._listed])
        ours = listed.filter(~foreign(listed, self._nested))
        rest = self._dead(ours, live)
        recognized = rest.filter(pl.col("kind").is_not_null())
        old = recognized if cutoff_ms is None else recognized.filter(pl.col("modified_ms") < cutoff_ms)
        young = _minus(_tally(recognized), _tally(old))
        if named:
            old = old.filter(pl.any_horizontal(*(pl.col("name").str.contains(n, literal=True) for n in named)))
        doubted = pl.col("kind").cast(pl.String).is_in(sorted(self._doubted | self._witness.doubted))
        kept, old = old.filter(doubted), old.filter(~doubted)
        self._orphans = old.select("name", "bytes", "modified_ms", pl.col("kind").cast(pl.String)).sort("name")
        needed = live.filter(pl.col("needed")).select("name", "bytes").unique()
        wrong = self._wrong(needed if self._complete else _NO_NEED, listed)
        doubled = self._doubled(live, listed)
        return SetCounts(
            listed=_tally(ours) + self._unreadable + self._spared,
            live=_minus(_tally(ours), _tally(rest)) + self._spared,
            young=young,
            unknown=_minus(_tally(rest), _tally(recognized)) + self._unreadable,
            orphans=_tally(old),
            by_kind=_by_kind(self._orphans),
            missing=len(wrong.filter(pl.col("found").is_null())),
            resized=len(wrong.filter(pl.col("found").is_not_null())),
            examples=_examples(wrong),
            doubled=doubled["name"].n_unique(),
            doubles=_doubles(doubled),
            needed=needed["name"].n_unique(),
            unproven=self._witness.unproven,
            doubted=_tally(kept),
        )

    def orphans(self) -> Iterator[pa.RecordBatch]:
        for files in self._orphans.iter_slices(_BATCH):
            table = files.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(ORPHANS)
            yield from table.combine_chunks().to_batches()

    def close(self) -> None:
        self._listed, self._live, self._wanted = [], [], []
        self._read, self._nested, self._witness = set(), set(), Witness()
        self._orphans = _NO_ORPHANS

    @property
    def _of(self) -> TableFiles:
        if self._table_files is None:
            raise ValueError("no candidates yet, expected list() or reached() first")
        return self._table_files

    def _add(self, read: tuple[pl.DataFrame, FileTotals]) -> None:
        """Add listed files to the candidates."""
        batches, unreadable = read
        self._unreadable += unreadable
        self._nested.update(batches.filter(pl.col(NESTED).is_not_null()).select("place", NESTED).unique().iter_rows())
        self._listed.append(batches.drop(NESTED))
        self._hold(len(batches))

    def _hold(self, names: int) -> None:
        self._held += names
        if self._held > self._limit:
            raise TooManyNames(f"{self._held:,} names, expected at most {self._limit:,} in one process")

    def _look_up(self, live: pl.DataFrame) -> None:
        """Add the files that `reached` named to the candidates, if the store still has them. Live ones are not looked
        up, only counted."""
        wanted, self._wanted = self._wanted, []
        if not wanted:
            return
        names = pl.concat(wanted).group_by("name").agg(pl.col("bytes").max())
        recognized = classify(unkept(names, self._of), self._of).filter(pl.col("kind").is_not_null())
        dead = self._dead(recognized, live)
        self._spared += _minus(_tally(recognized), _tally(dead))
        found = unless_of_others(stored(self._of.storage, dead["name"].to_list()), self._of)
        self._listed.append(found.join(dead.select("name", "kind", "place"), on="name"))

    def _wrong(self, needed: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
        """Needed files that are missing or have another size, sorted by name.

        Some of the files outside of all places are looked up in the store: a name with a wrong spelling seems to be
        outside.
        """
        within = self._within("name")
        inside, outside = needed.filter(within), needed.filter(~within).sort("name", "bytes").head(_ASKED)
        elsewhere = stored(self._of.storage, outside["name"].unique().sort().to_list())
        return _wrong(pl.concat([inside, outside]), pl.concat([f.select("name", "bytes") for f in (listed, elsewhere)]))

    def _doubled(self, live: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
        """Orphans that may be a live file, each with that file's name as `other`.

        `other` was not listed itself. It has the same last component and, if metadata states a size, the same size. A
        folder with two names, through a link or an alias of a bucket, is listed under one of them.
        """
        orphans = self._orphans.select("name", "bytes", bare("name").alias("bare"))
        named = live.select(pl.col("name").alias("other"), pl.col("bytes").alias("size"), bare("name").alias("bare"))
        pairs = orphans.join(named.unique(), on="bare")
        pairs = pairs.filter(pl.col("size").is_null() | (pl.col("size") == pl.col("bytes")))
        if self._complete:
            return pairs.join(listed.select("name"), left_on="other", right_on="name", how="anti")
        return pairs.filter(~self._within("other"))

    def _within(self, column: str) -> pl.Expr:
        """Whether each name of a column is below any place."""
        return pl.any_horizontal(
            *(pl.col(column).str.starts_with(f"{f}/" if f else "") for f in walk_folders(self._of))
        )

    def _dead(self, files: pl.DataFrame, live: pl.DataFrame) -> pl.DataFrame:
        """The rows of `files` that match no live name."""
        rest = files.join(live.select("name"), on="name", how="anti")
        if self._of.by_bare_name:
            rest = rest.join(live.select(bare("name")), left_on=bare("name"), right_on="name", how="anti")
        return rest


_NO_LIVE = pl.DataFrame(schema={"name": pl.String, "bytes": pl.Int64, "needed": pl.Boolean})
# Built from a schema, not by a query: a query at import starts the threads of Polars, which a fork does not inherit.
_NO_NEED = pl.DataFrame(schema={"name": pl.String, "bytes": pl.Int64})
_NO_ORPHANS = pl.DataFrame(schema={"name": pl.String, "bytes": pl.Int64, "modified_ms": pl.Int64, "kind": pl.String})


def _reach(
    table: OpenFiles, roots: Sequence[OpenRoot], read: set[SomeSource], witness: Witness
) -> Iterator[pl.DataFrame]:
    """Files (schema FILES) of the roots and of their sources. Skips sources in `read`, and adds the others to it."""
    for root in roots:
        reach = table.reach(root)
        witness.add(reach)
        yield live_files(reach.files)
        for source in reach.sources:
            if source not in read:
                read.add(source)
                yield from map(live_files, table.live(source))


def live_files(files: pa.Table | pa.RecordBatch) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(files)).select(_NO_LIVE.columns)


def listed_files(batch: Sequence[ListedFile], table_files: TableFiles) -> tuple[pl.DataFrame, FileTotals]:
    """A listed batch with the columns of `classify`, and totals of the files whose names are not valid text: metadata
    cannot name those."""
    files, unreadable = _frame(batch)
    return classify(unkept(files, table_files), table_files), unreadable


def _frame(batch: Sequence[ListedFile]) -> tuple[pl.DataFrame, FileTotals]:
    """Columns of a batch, and totals of the files whose names are not valid text."""
    try:
        return _columns(batch), NO_FILES
    except UnicodeEncodeError:
        texts = [file for file in batch if _is_text(file.name)]
        others = [file.bytes for file in batch if not _is_text(file.name)]
        return _columns(texts), FileTotals(len(others), sum(others))


def _columns(batch: Sequence[ListedFile]) -> pl.DataFrame:
    names, sizes, times = zip(*batch, strict=True) if batch else ((), (), ())
    arrays: list[pa.Array[Any]] = [
        pa.array(names, pa.string()),
        pa.array(sizes, pa.int64()),
        pa.array(times, pa.int64()),
    ]
    return pl.DataFrame(pl.from_arrow(pa.RecordBatch.from_arrays(arrays, ["name", "bytes", "modified_ms"])))


def _is_text(name: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _no_files(listed: Sequence[pl.DataFrame]) -> pl.DataFrame:
    schema = {"name": pl.String, "bytes": pl.Int64, "modified_ms": pl.Int64, "kind": pl.String, "place": pl.UInt16}
    return listed[0].clear() if listed else pl.DataFrame(schema=schema)


def _tally(files: pl.DataFrame) -> FileTotals:
    return FileTotals(len(files), int(files["bytes"].sum()))


def _minus(all_: FileTotals, some: FileTotals) -> FileTotals:
    return FileTotals(all_.files - some.files, all_.bytes - some.bytes)


def _by_kind(orphans: pl.DataFrame) -> dict[str, FileTotals]:
    counts = orphans.group_by("kind").agg(pl.len().alias("files"), pl.col("bytes").sum()).sort("kind")
    return {kind: FileTotals(files, size) for kind, files, size in counts.iter_rows()}


def _wrong(needed: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """The rows of `needed` that are not in `listed`, or that have another size there; sorted by name."""
    sizes = listed.select("name", pl.col("bytes").alias("found"))
    pairs = needed.join(sizes, on="name", how="left", maintain_order="none")
    return pairs.filter(pl.col("found").is_null() | (pl.col("found") != pl.col("bytes"))).sort("name", "bytes")


def _doubles(doubled: pl.DataFrame) -> tuple[str, ...]:
    pairs = doubled.select("name", "other", "bytes").unique().sort("name", "other").head(EXAMPLES)
    return tuple(f"{name} and {other}, of {size} bytes" for name, other, size in pairs.iter_rows())


def _examples(wrong: pl.DataFrame) -> tuple[FileFault, ...]:
    return tuple(FileFault(*row) for row in wrong.head(EXAMPLES).select("name", "bytes", "found").iter_rows())
