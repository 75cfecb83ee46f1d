"""Seed -> a history: tables that differ in keys, buckets and compaction options, with eventful lives."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from tests.drivers.history import Alter, Commit, Compact, Expire, History, Key, Ranking, State, Step, Truncate, Values
from tests.drivers.paimon_values import Layout
from tests.drivers.random_elements import element_column, element_function, element_value
from tests.drivers.random_values import PRIMITIVES, WIDER, kept_in_orc, nth_value, odd_text, random_value

# Columns of a key. In every shape one of them can tell any two rows apart.
KEY_SHAPES: tuple[tuple[str, ...], ...] = (
    ("BIGINT",),
    ("STRING",),
    ("INT",),
    ("DECIMAL(12, 2)",),
    ("INT", "STRING"),
    ("STRING", "TIMESTAMP(6)"),
    ("SMALLINT", "BIGINT"),
    ("BOOLEAN", "DATE"),
    ("TIMESTAMP(3)", "VARBINARY(8)"),
    ("TINYINT", "DECIMAL(25, 3)"),
    ("DOUBLE",),
    ("FLOAT", "BYTES"),
    ("VARCHAR(300)", "INT"),
)
PARTITION_SHAPES: tuple[tuple[str, ...], ...] = ((), (), (), ("STRING",), ("INT",), ("DATE", "STRING"))
SEQUENCE_TYPES = (
    "INT",
    "BIGINT",
    "DATE",
    "TIMESTAMP(3)",
    "TIMESTAMP(6)",
    "TINYINT",
    "DECIMAL(12, 2)",
    "DECIMAL(25, 3)",
    "DOUBLE",
    "STRING",
)
SETTABLE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("deletion-vectors.bitmap64", ("true",)),
    ("num-sorted-run.compaction-trigger", ("2", "5")),
    ("target-file-size", ("1 kb", "8 kb")),
    ("compaction.size-ratio", ("20",)),
    ("file.compression", ("zstd", "none")),
)

FILE_FORMATS: tuple[Mapping[str, str], ...] = (
    {"file.format": "orc"},
    {"file.format": "orc"},
    {"file.format": "orc", "file.format.per.level": "0:parquet"},
    {"file.format.per.level": "5:orc"},
    {"file.format.per.level": "0:orc,4:orc"},
    {"file.format": "avro"},
    {"file.format.per.level": "0:avro"},
    {"file.format": "orc", "file.format.per.level": "0:avro,5:parquet"},
)

CODEC = "file.compression"
SMALL_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(5, 2)", "DOUBLE", "FLOAT")
GROUP_TYPES = ("INT", "BIGINT", "DOUBLE", "STRING", "TIMESTAMP(3)", "DECIMAL(12, 2)", "DATE")
RETRACTED = ("last_value", "last_non_null_value")
UNRETRACTED = ("max", "min", "first_value", "first_non_null_value")
# Java does not compare truth values.
OF_TRUTHS = {"max": "bool_or", "min": "bool_and"}

# No slash: lookup compaction in Paimon Java names local files after the partition, and fails.
ODD_PARTITIONS = ("", "a=b:c d%\u00e9", "..")
# No blank one: Java's compactions forget it, and its readers do not.
TEXTS = ("a", "b,a", "a,,c", "\u00e9; a")
ODD_NUMBERS = ("NaN", "-0.0", "Infinity", "-Infinity")

# Each option's values and how often it is set at all. Together they reach every branch of the level picking.
OPTIONS: tuple[tuple[str, float, tuple[str, ...]], ...] = (
    ("deletion-vectors.bitmap64", 0.4, ("true",)),
    ("lookup-compact", 0.2, ("gentle",)),
    ("lookup-compact.max-interval", 0.3, ("1", "3")),
    ("num-sorted-run.compaction-trigger", 0.4, ("2", "3", "4")),
    ("num-levels", 0.15, ("3", "4", "7")),
    ("compaction.size-ratio", 0.2, ("0", "50")),
    ("compaction.max-size-amplification-percent", 0.4, ("50", "1000", "1000")),
    ("compaction.total-size-threshold", 0.08, ("4 kb", "20 kb")),
    ("compaction.incremental-size-threshold", 0.08, ("2 kb", "8 kb")),
    ("compaction.optimization-interval", 0.06, ("1 ms", "1 d")),
    ("compaction.small-file-ratio", 0.1, ("0.3", "1.0")),
    ("target-file-size", 0.5, ("1 kb", "1 kb", "4 kb", "16 kb")),
    ("changelog-producer", 0.1, ("input",)),
    ("file.compression", 0.6, ("none", "none", "snappy")),
    ("metadata.stats-mode", 0.2, ("none", "counts", "full", "truncate(4)")),
    ("metadata.stats-dense-store", 0.1, ("false",)),
    ("fields.v0.stats-mode", 0.1, ("none", "full")),
    ("index-file-in-data-file-dir", 0.05, ("true",)),
    ("partition.legacy-name", 0.1, ("false",)),
    ("write.sequence-number-init-mode", 0.05, ("snapshot",)),
    ("file.block-size", 0.4, ("1 kb", "4 kb")),
    ("manifest.merge-min-count", 0.3, ("2", "3")),
    ("manifest.target-file-size", 0.1, ("1 kb",)),
    ("manifest.full-compaction-threshold-size", 0.1, ("1 kb",)),
    ("metadata.stats-keep-first-n-columns", 0.1, ("1",)),
)


CHANGELOGS: tuple[tuple[str, float, tuple[str, ...]], ...] = (
    ("changelog-producer.row-deduplicate", 0.6, ("true",)),
    ("changelog-file.prefix", 0.2, ("changes-", "data-")),
    ("changelog-file.compression", 0.2, ("none", "snappy")),
    ("changelog-file.stats-mode", 0.3, ("none", "counts", "full")),
    ("changelog-file.format", 0.1, ("parquet",)),
)
_OF_LOOKUPS = ("deletion-vectors.enabled", "deletion-vectors.bitmap64", "lookup-compact", "lookup-compact.max-interval")


def random_history(seed: int) -> History:
    """The same seed makes the same history, whatever ran before."""
    random = Random(seed)
    layout = _layout(random)
    return History(seed, layout, _steps(layout, random))


def merge_history(seed: int) -> History:
    """A history of a table whose merge engine makes one row of several: half of them update, half aggregate."""
    random = Random(f"merge {seed}")
    more = [(f"n{i}", random.choice(SMALL_NUMBERS)) for i in range(random.randrange(3))]
    return _merging(seed, random, [*more, *[("t0", "STRING")] * random.randrange(2)])


def element_history(seed: int) -> History:
    """As merge_history, with arrays and maps whose elements are joined."""
    random = Random(f"elements {seed}")
    return _merging(seed, random, [element_column(random, n) for n in range(random.randrange(1, 5))])


def _merging(seed: int, random: Random, more: list[tuple[str, str]]) -> History:
    plain = _layout(random)
    engine = random.choice(("partial-update", "aggregation"))
    if engine == "aggregation":
        merging = _aggregating(random, plain, more)
    else:
        sequence, merging = _updating(random, plain, more)
        more += sequence
    layout = replace(
        plain, columns=[*plain.columns, *more], options={**plain.options, "merge-engine": engine, **merging}
    )
    return History(seed, layout, _steps(layout, random))


def format_history(seed: int) -> History:
    """A history of a table with data files of other formats than Parquet, on all levels or on some."""
    random = Random(f"format {seed}")
    plain = _layout(random)
    options = {**plain.options, **random.choice(FILE_FORMATS)}
    if "avro" in str(options):
        # Codecs that every format has; "zlib" of one is "deflate" of another.
        options[CODEC] = random.choice(("zstd", "snappy"))
    elif options.get(CODEC) == "none" and random.random() < 0.5:
        options[CODEC] = "lz4"
    if random.random() < 0.3:
        options["data-file.thin-mode"] = "true"
    if random.random() < 0.2:
        # Of no account in compactions.
        options["target-file-row-num"] = "20"
    layout = replace(plain, columns=[(name, _stored_type(text)) for name, text in plain.columns], options=options)
    return History(seed, layout, _steps(layout, random))


def told_format_history(seed: int) -> History:
    """As format_history, of a table whose compactions tell what they change, half of them with vectors."""
    made = format_history(seed) if seed % 2 else _without_vectors(format_history(seed))
    # Java takes bounds of CHAR from ORC's own statistics, which leave out blanks at the end.
    columns = [(name, "VARCHAR" + text[4:] if text.startswith("CHAR(") else text) for name, text in made.layout.columns]
    options = {**made.layout.options, "changelog-producer": "lookup" if seed % 4 else "full-compaction"}
    return replace(made, layout=replace(made.layout, columns=columns, options=options))


def _stored_type(text: str) -> str:
    """A type that all formats have. Java's readers shift zoned times by their own zone, and in ORC files alone."""
    return text.replace(" WITH LOCAL TIME ZONE", "").replace("TIMESTAMP(9)", "TIMESTAMP(6)")


def changelog_history(seed: int) -> History:
    """A history of a table whose compactions tell what they change, of any merge engine.

    Where a row's time of writing alone decides, some batches come twice: their second rows are equal to the first.
    """
    random = Random(f"changelog {seed}")
    made = (random_history if random.random() < 0.5 else merge_history)(seed)
    options = {**made.layout.options, "changelog-producer": "lookup"}
    options |= {name: random.choice(values) for name, share, values in CHANGELOGS if random.random() < share}
    if random.random() < 0.5:
        names = [name for name, _ in made.layout.columns]
        ignored = random.sample(names, random.randrange(len(names) + 1))
        options["changelog-producer.row-deduplicate-ignore-fields"] = ",".join(ignored)
    steps = made.steps if "sequence.field" in options else tuple(_repeating(made.steps, random))
    return History(seed, replace(made.layout, options=options), steps)


def _without_kinds(steps: Sequence[Step], kinds: Sequence[str]) -> Iterator[Step]:
    for step in steps:
        rows = [row for row in step.rows if row[0] not in kinds] if isinstance(step, Commit) else []
        if rows or not isinstance(step, Commit):
            yield replace(step, rows=tuple(rows)) if isinstance(step, Commit) else step


def _repeating(steps: Sequence[Step], random: Random) -> Iterator[Step]:
    before: Commit | None = None
    for step in steps:
        yield step
        if isinstance(step, Commit):
            before = step
        elif isinstance(step, Compact) and before is not None and random.random() < 0.5:
            yield before
        elif isinstance(step, Alter):
            before = None


def told_element_history(seed: int) -> History:
    """As element_history, of a table whose compactions tell what they change, half of them with vectors."""
    made = (element_history if seed % 2 else plain_element_history)(seed)
    random = Random(f"told elements {seed}")
    options = {**made.layout.options, "changelog-producer": "lookup" if seed % 4 else "full-compaction"}
    options |= {name: random.choice(values) for name, share, values in CHANGELOGS if random.random() < share}
    steps = made.steps
    if options["merge-engine"] == "aggregation" and options["changelog-producer"] == "lookup":
        removes = "aggregation.remove-record-on-delete" in options
        steps = tuple(_without_kinds(steps, ("-U",) if removes else ("-U", "-D")))
    return replace(made, layout=replace(made.layout, options=options), steps=steps)


def full_changelog_history(seed: int) -> History:
    """A history of a table whose full compactions tell what they change, of any merge engine but first-row."""
    random = Random(f"full changelog {seed}")
    made = plain_history(seed)
    options = {**made.layout.options, "changelog-producer": "full-compaction"}
    options |= {name: random.choice(values) for name, share, values in CHANGELOGS if random.random() < share}
    if random.random() < 0.5:
        names = [name for name, _ in made.layout.columns]
        ignored = random.sample(names, random.randrange(len(names) + 1))
        options["changelog-producer.row-deduplicate-ignore-fields"] = ",".join(ignored)
    return replace(made, layout=replace(made.layout, options=options))


def looked_up_history(seed: int) -> History:
    """A history of a table without deletion vectors, of each merge engine in turn, whose compactions tell what they
    find by lookups."""
    random = Random(f"looked up {seed}")
    made = plain_history(seed)
    kept = [(name, value) for name, value in made.layout.options.items() if not name.startswith("compaction.force")]
    options = {**dict(kept), "changelog-producer": "lookup"}
    options |= {name: random.choice(values) for name, share, values in CHANGELOGS if random.random() < share}
    if random.random() < 0.3:
        options["lookup-compact"] = "gentle"
    steps = made.steps if "sequence.field" in options else tuple(_repeating(made.steps, random))
    if options.get("merge-engine") == "aggregation":
        # Of a retract that meets no row Java's compaction makes one, which its readers did not see before.
        removes = "aggregation.remove-record-on-delete" in options
        steps = tuple(_without_kinds(steps, ("-U",) if removes else ("-U", "-D")))
    return replace(made, layout=replace(made.layout, options=options), steps=steps)


Columns = Sequence[tuple[str, str]]


def first_row_history(seed: int) -> History:
    """A history of a table that keeps the first row of each key. It has no vectors, and its writers ignore deletes."""
    made = random_history(seed)
    left_out = ("deletion-vectors.", "sequence.field", "changelog-producer")
    options = {name: value for name, value in made.layout.options.items() if not name.startswith(left_out)}
    options |= {"merge-engine": "first-row", "ignore-delete": "true"}
    return replace(made, layout=replace(made.layout, options=options))


def told_first_row_history(seed: int) -> History:
    """A history of a table that keeps the first row of each key, and whose compactions tell which keys came."""
    made = first_row_history(seed)
    return replace(made, layout=replace(made.layout, options={**made.layout.options, "changelog-producer": "lookup"}))


def plain_history(seed: int) -> History:
    """A history of a table without deletion vectors, of each merge engine in turn."""
    return _without_vectors(merge_history(seed) if seed % 3 else random_history(seed))


def plain_element_history(seed: int) -> History:
    """A history of a table without deletion vectors, with arrays and maps whose elements are joined."""
    return _without_vectors(element_history(seed))


def snapshot_order_history(seed: int) -> History:
    """A history of a table whose rows are as new as the snapshot that they came with, of each merge engine in turn."""
    made = (random_history, merge_history, element_history)[seed % 3](seed)
    left_out = ("sequence.field", "changelog-producer")
    options = {name: value for name, value in made.layout.options.items() if not name.startswith(left_out)}
    return replace(made, layout=replace(made.layout, options={**options, "sequence.snapshot-ordering": "true"}))


def plain_snapshot_order_history(seed: int) -> History:
    """The same without deletion vectors."""
    return _without_vectors(snapshot_order_history(seed))


def plain_format_history(seed: int) -> History:
    """A history of a table without deletion vectors, with data files of other formats than Parquet."""
    return _without_vectors(format_history(seed))


def _without_vectors(made: History) -> History:
    random = Random(f"plain {made.seed}")
    options = {name: value for name, value in made.layout.options.items() if name not in _OF_LOOKUPS}
    # Without a lookup, only enough runs are a reason to compact, unless level 0 is to be lifted at any time.
    options["num-sorted-run.compaction-trigger"] = random.choice(("2", "2", "3", "5"))
    if random.random() < 0.5:
        options["compaction.force-up-level-0"] = "true"
    if random.random() < 0.5:
        options.pop("sequence.field", None)
        options.pop("sequence.field.sort-order", None)
    # Level 0 grows while compactions are left out.
    steps = tuple(step for step in made.steps if step != Compact(full=False) or random.random() < 0.6)
    return replace(made, layout=replace(made.layout, options=options), steps=steps)


def _updating(random: Random, layout: Layout, more: Columns) -> tuple[Columns, dict[str, str]]:
    """Columns of sequence groups, and the options of a partial update."""
    if random.random() < 0.3:
        return [], random.choice(({"ignore-delete": "true"}, {"partial-update.remove-record-on-delete": "true"}))
    sequence = [(f"q{i}", random.choice(GROUP_TYPES)) for i in range(random.choice((1, 2, 2, 3)))]
    names = [name for name, _ in sequence]
    ends = 2 if len(names) == 3 or (len(names) == 2 and random.random() < 0.3) else 1
    groups = [group for group in (names[:ends], names[ends:]) if group]
    columns = [(name, text) for name, text in layout.columns if name.startswith("v")] + [*more]
    of_group = {name: random.randrange(-1, len(groups)) for name, _ in columns}
    # A group has a column at least.
    of_group |= {columns[n % len(columns)][0]: n for n in range(len(groups))}
    options = {}
    for n, group in enumerate(groups):
        if members := [name for name, at in of_group.items() if at == n]:
            options[f"fields.{','.join(group)}.sequence-group"] = ",".join(members)
    ignores = random.random() < 0.25
    if ignores:
        options["ignore-delete"] = "true"
    elif random.random() < 0.5:
        held = [group[0] for group in groups if f"fields.{','.join(group)}.sequence-group" in options]
        options["partial-update.remove-record-on-sequence-group"] = random.choice(held)
    for name, text in columns:
        if of_group[name] >= 0 and random.random() < 0.6:
            options |= _function(random, name, text, without=("first_non_null_value",))
    return sequence, options


def _function(
    random: Random, name: str, text: str, *, without: Sequence[str] = (), ignores: bool = True
) -> dict[str, str]:
    """A function of a column; one that cannot take a value back ignores retracts, for Java's writer fails at others."""
    if name[0] in "ou":
        return element_function(random, name, text, ignores=ignores)
    computed = {"n": ("sum", "product"), "t": ("listagg", "listagg")}.get(name[0], ())
    choice = [*RETRACTED, *computed, *(UNRETRACTED if ignores else ())]
    function = random.choice([each for each in choice if each not in without])
    if not ignores and function in ("listagg", "product"):
        function = "last_value"
    # Small whole numbers are soon beyond their type.
    if function == "product" and text not in ("BIGINT", "DOUBLE", "FLOAT", "DECIMAL(5, 2)"):
        function = "sum"
    named = OF_TRUTHS.get(function, function) if text == "BOOLEAN" else function
    options = {f"fields.{name}.aggregate-function": named}
    exact = function == "product" and text not in ("DOUBLE", "FLOAT")
    if function in (*UNRETRACTED, "listagg") or exact or (ignores and random.random() < 0.2):
        options[f"fields.{name}.ignore-retract"] = "true"
    if function == "listagg":
        options |= random.choice(({}, {f"fields.{name}.distinct": "true"}, {f"fields.{name}.list-agg-delimiter": "; "}))
    return options


def _aggregating(random: Random, layout: Layout, more: Columns) -> dict[str, str]:
    removes = random.random() < 0.4
    options = {"aggregation.remove-record-on-delete": "true"} if removes else {}
    if random.random() < 0.3:
        options["fields.default-aggregate-function"] = "last_value"
    values = [(name, text) for name, text in layout.columns if name.startswith("v")]
    for name, text in [*values, *more]:
        if random.random() < 0.8:
            # Java allows no column to ignore retracts where a delete removes the row.
            options |= _function(random, name, text, ignores=not removes)
    return options


def _layout(random: Random) -> Layout:
    partitions = [(f"p{i}", f"{t} NOT NULL") for i, t in enumerate(random.choice(PARTITION_SHAPES))]
    keys = [(f"k{i}", f"{t} NOT NULL") for i, t in enumerate(random.choice(KEY_SHAPES))]
    sequence = [(f"s{i}", random.choice(SEQUENCE_TYPES)) for i in range(random.choice((0, 0, 1, 1, 2)))]
    values = [(f"v{i}", t) for i, t in enumerate(random.choices(PRIMITIVES, k=random.randrange(1, 5)))]
    columns = [*partitions, *keys, *sequence, *values]
    random.shuffle(columns)
    primary = [name for name, _ in (*partitions, *keys)]
    options = _options(random, [name for name, _ in keys], [name for name, _ in sequence])
    return Layout(
        columns=columns, primary_keys=primary, partition_keys=[name for name, _ in partitions], options=options
    )


def _options(random: Random, keys: Sequence[str], sequence: Sequence[str]) -> dict[str, str]:
    options = {
        "bucket": str(random.choice((1, 1, 1, 2, 3))),
        "deletion-vectors.enabled": "true",
        "write-only": "true",
        **{name: random.choice(values) for name, share, values in OPTIONS if random.random() < share},
    }
    if len(keys) > 1 and random.random() < 0.3:
        options["bucket-key"] = keys[0]
    if sequence:
        options["sequence.field"] = ",".join(sequence)
        if random.random() < 0.2:
            options["sequence.field.sort-order"] = "descending"
    return options


def _steps(layout: Layout, random: Random) -> tuple[Step, ...]:
    life = _Life(layout, random)
    life.commit(share_of_keys=random.choice((0.3, 0.9, 0.9)))
    if random.random() < 0.7:
        life.compact(full=random.random() < 0.6)
    share = 0.25
    for _ in range(random.randrange(2, 8)):
        if random.random() < 0.55:
            # Ever smaller batches: a level stays below the next one only while it is the smaller of the two.
            life.commit(share_of_keys=share)
            share *= random.choice((0.2, 0.4, 1.0))
        else:
            life.happen()
    if random.random() < 0.9:
        life.commit(share_of_keys=share)
    return tuple(life.steps)


class _Life:
    """Makes steps one after the other, with an eye on the state they lead to."""

    def __init__(self, layout: Layout, random: Random) -> None:
        self._layout = layout
        self._random = random
        self.steps: list[Step] = []
        self._columns = list(self._layout.columns)
        self._state = State(self._layout)
        self._ranking = Ranking.of(self._layout)
        self._forgotten: dict[Key, Values] = {}
        self._keyspace = self._random.choice((60, 600, 1200, 2400))
        self._narrow = self._random.random() < 0.4
        self._spelled = self._random.random() < 0.5
        named = [value for name, value in layout.options.items() if name.startswith("file.format")]
        self._in_orc = any("orc" in value for value in named)
        self._in_avro = any("avro" in value for value in named)

    def happen(self) -> None:
        """Anything but a commit of random rows."""
        events = (self._compact_some, self.alter, self.expire, self.empty, self.truncate)
        (event,) = self._random.choices(events, weights=(66, 18, 8, 4, 4))
        event()

    def _compact_some(self) -> None:
        self.compact(full=self._random.random() < 0.15)

    def commit(self, *, share_of_keys: float) -> None:
        count = max(1, int(self._keyspace * share_of_keys))
        # A narrow batch leaves most files alone, so that whole files can move up a level.
        window = max(count, self._keyspace // 6) if self._narrow else self._keyspace
        start = self._random.randrange(self._keyspace - window + 1)
        numbers = self._random.choices(range(start, start + window), k=count)
        # A file without deletes may be lifted as it is.
        kinds = ("+I", "+U", "-D", "-U") if self._random.random() < 0.6 else ("+I", "+U")
        self._add(Commit(tuple(row for number in numbers for row in self._rows(number, kinds))))

    def compact(self, *, full: bool) -> None:
        self._forgotten = self._state.tombstones()
        self._add(Compact(full))

    def expire(self) -> None:
        self._add(Expire())

    def empty(self) -> None:
        """Deletes every row, of one partition or of the table, so that buckets run empty."""
        rows = list(self._state.rows().values())
        if self._layout.partition_keys and rows:
            at = [self._index(name) for name in self._layout.partition_keys]
            chosen = self._random.choice(rows)
            rows = [row for row in rows if all(row[i] == chosen[i] for i in at)]
        if rows:
            self._add(Commit(tuple(("-D", *row) for row in rows)))
        self.compact(full=self._random.random() < 0.5)

    def truncate(self) -> None:
        rows = list(self._state.rows().values())
        at = [self._index(name) for name in self._layout.partition_keys]
        whole = not rows or self._random.random() < 0.3
        self._add(Truncate(() if whole else tuple(self._random.choice(rows)[i] for i in at)))

    def alter(self) -> None:
        plain = [(name, text) for name, text in self._columns if name.startswith("v")]
        added = [name for name, _ in plain if name.startswith("va") and not name.endswith("r")]
        # Java refuses to rename a column that an option names.
        options = self._layout.options
        named = {option.split(".")[1] for option in options if option.startswith("fields.")}
        named |= {
            name for option, names in options.items() if option.endswith(".sequence-group") for name in names.split(",")
        }
        free = [name for name, _ in plain if name not in named]
        widened = [(name, text) for name, text in plain if text in WIDER]
        kind = self._random.random()
        if kind < 0.3 and free:
            old = self._random.choice(free)
            new = f"{old}r"
            self._columns = [(new if name == old else name, text) for name, text in self._columns]
            self._add(Alter(({"change": "rename_column", "name": old, "to": new},)))
        elif kind < 0.6 and widened:
            chosen, text = self._random.choice(widened)
            self._columns = [(name, WIDER[t] if name == chosen else t) for name, t in self._columns]
            self._add(Alter(({"change": "change_type", "name": chosen, "type": WIDER[text]},)))
        elif kind < 0.75 and added:
            # The next column gets the name again, and must not get the old values.
            self._columns = [(name, text) for name, text in self._columns if name != added[-1]]
            self._add(Alter(({"change": "drop_column", "name": added[-1]},)))
        elif kind < 0.85:
            name, values = self._random.choice([each for each in SETTABLE if not (self._in_avro and each[0] == CODEC)])
            self._add(Alter(({"change": "set_option", "name": name, "value": self._random.choice(values)},)))
        else:
            column = f"va{len(self._columns)}"
            added_type = self._random.choice(PRIMITIVES)
            self._columns.append((column, _stored_type(added_type) if self._in_orc or self._in_avro else added_type))
            self._add(Alter(({"change": "add_column", "name": column, "type": self._columns[-1][1]},)))

    def _add(self, step: Step) -> None:
        self._state.apply(step)
        self.steps.append(step)

    def _rows(self, number: int, kinds: Sequence[str]) -> list[Values]:
        row = self._row(number)
        kind = self._random.choices(kinds, weights=(50, 30, 18, 2)[: len(kinds)])[0]
        return [(kind, *row)] if kind != "+U" else [("-U", *row), ("+U", *row)]

    def _row(self, number: int) -> Values:
        values = {name: self._value(name, text, number) for name, text in self._columns}
        for option, names in self._layout.options.items():
            # Java's compactions and its readers disagree on a group that has values and no sequence.
            if option.endswith(".sequence-group") and all(
                values.get(q) is None for q in option.split(".")[1].split(",")
            ):
                values |= dict.fromkeys(names.split(","))
        row = tuple(values[name] for name, _ in self._columns)
        key = tuple(row[self._index(name)] for name in self._layout.primary_keys)
        forgotten = self._forgotten.get(key)
        if forgotten is None or self._ranking.rank(row) >= self._ranking.rank(forgotten):
            return row
        # A compaction forgets deletes, so a later row that is older than one would live or not by its timing.
        fields = {position for position, _ in self._ranking.fields}
        return tuple(forgotten[i] if i in fields else value for i, value in enumerate(row))

    def _index(self, name: str) -> int:
        return [column for column, _ in self._columns].index(name)

    def _value(self, name: str, type_text: str, number: int) -> Any:
        bare = type_text.removesuffix(" NOT NULL")
        if name.startswith("p"):
            count = number % 3 if name == "p0" else number % 2
            return ODD_PARTITIONS[count] if self._spelled and bare == "STRING" else nth_value(bare, count)
        if name.startswith("k"):
            return self._key(bare, number)
        if name.startswith("q"):
            # Ties and late rows, and rows that leave the group alone.
            return None if self._random.random() < 0.2 else self._in_group(bare)
        if name.startswith("s"):
            return None if self._random.random() < 0.1 else self._sequence(bare)
        return None if self._random.random() < 0.15 else self._merged(name, bare)

    def _merged(self, name: str, bare: str) -> Any:
        """A value of a column that may have a function."""
        if name.startswith("t"):
            return self._random.choice(TEXTS)
        if name[0] in "ou":
            return element_value(self._random, name, bare)
        if name.startswith("n"):
            return self._number(bare)
        value = random_value(bare, self._random)
        return kept_in_orc(value, bare) if self._in_orc else value

    def _in_group(self, bare: str) -> Any:
        if bare in ("DOUBLE", "STRING"):
            return self._random.choice({"DOUBLE": (0.0, "-0.0", 1.5, "NaN"), "STRING": ("", "a", "b", "\u00e9")}[bare])
        return nth_value(bare, self._random.randrange(4))

    def _number(self, bare: str) -> Any:
        """Few enough and small enough for a sum."""
        small = self._random.randrange(-2, 3)
        return small / 4 if bare in ("DOUBLE", "FLOAT") else f"{small}.25" if bare.startswith("DECIMAL") else small

    def _sequence(self, bare: str) -> Any:
        if bare in ("DOUBLE", "STRING"):
            return random_value(bare, self._random)
        return nth_value(bare, self._random.randrange(100) - 40 * (bare in ("INT", "TINYINT")))

    def _key(self, bare: str, number: int) -> Any:
        match bare:
            case "BOOLEAN":
                return number % 2 == 0
            case "TINYINT" | "SMALLINT":
                return number % 5 - 2
            case "INT" | "BIGINT":
                return number - 300
            case "FLOAT" | "DOUBLE":
                return ODD_NUMBERS[number] if number < len(ODD_NUMBERS) else (number - 300) / 8
            case "STRING" | "VARCHAR(300)" if self._spelled:
                return odd_text(number)
            case _:
                return nth_value(bare, number)
