"""The shape of the code, read from its sources: who may import whom, and what must not appear at all."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JOBS = ROOT / "jobs"
NIGHT = JOBS / "nightkeep"
PAGE = ROOT / "docs/architecture.md"

# Room of the package -> the rooms it may import, besides itself. Read it from the bottom: commands run groups of
# tables, a group runs operations, an operation runs stages, stages call a format. An import within a function counts,
# and so does a module that is named in a text to be imported.
EDGES = {
    "redaction": "",
    "causes": "",
    "errors": "causes redaction",
    "surprises": "causes errors",
    "extras": "errors",
    "limits": "errors",
    "silence": "errors limits",
    "interpreter": "errors",
    "environment": "errors",
    "model": "",
    "progress": "",
    "tasks": "model",
    "storage": "errors limits silence",
    "places": "errors redaction storage",
    "protocol": "errors kernels model storage",
    "policy": "errors model places redaction",
    "card": "redaction",
    "records": "card causes errors model places redaction storage",
    "pages": "card model records redaction",
    "notifications": "causes errors model policy records redaction",
    "monitoring": "model places records redaction",
    "lineage": "model records redaction",
    "metastores": "errors limits model redaction silence",
    "discovery": "causes errors formats metastores model places policy records",
    "readiness": "causes discovery errors extras limits model places policy spark storage",
    "sql_text": "errors kernels model policy",
    "kernels": "model",
    "encodings": "errors kernels limits model",
    "clustering": "card errors kernels model protocol sql_text storage",
    "gate": "kernels model storage",
    "formats": "clustering encodings errors gate kernels limits metastores model protocol redaction silence "
    "spark sql_text storage",
    "spark": "environment errors extras interpreter model progress storage tasks",
    "stages": "errors kernels model protocol sql_text surprises tasks",
    "reading": "card errors kernels model protocol sql_text",
    "admission": "errors formats model policy records",
    "estimates": "model protocol records",
    "running": "admission errors estimates formats model policy progress protocol records sql_text stages surprises "
    "tasks",
    "other_readers": "causes errors formats interpreter kernels limits model protocol reading records",
    "checking": "causes errors formats model other_readers policy records spark surprises",
    "retention": "admission checking errors formats model places policy protocol records running spark storage",
    "auditing": "admission checking errors formats kernels model protocol records retention running spark tasks",
    "groups": "admission auditing causes checking errors estimates formats interpreter limits model pages places "
    "policy progress records redaction retention running silence spark surprises",
    "nights": "discovery errors groups model notifications pages places policy records redaction",
    "api": "admission card checking clustering discovery errors extras formats groups lineage model monitoring "
    "nights notifications other_readers pages places policy progress protocol readiness reading records redaction "
    "running spark sql_text tasks",
    "commands": "admission api discovery environment errors formats groups model nights pages places policy progress "
    "records redaction",
    "__main__": "commands errors model",
}

# Room of a format -> the rooms of the same format it may import. Every format has its files in rooms of these names.
FORMAT_EDGES = {
    "metadata": "",
    "data": "metadata",
    "deletes": "data metadata",
    "rewrite": "data deletes metadata",
    "catalog": "metadata",
    "commit": "catalog data metadata",
    "gate": "data deletes metadata",
    "reading": "catalog data deletes gate metadata",
    "spark": "catalog deletes metadata",
    "retention": "catalog deletes metadata",
    "upkeep": "commit gate metadata retention",
    "listing": "catalog metadata",
    "format": "catalog commit gate metadata reading retention rewrite upkeep",
    "upsert": "catalog commit data deletes metadata",
}

# Room within a room -> the rooms within the same room that it may import. A room's own modules stand for the room.
INNER_EDGES = {
    "groups/children": "",
    "groups": "groups/children",
    "groups/session": "groups groups/children",
    "retention/orphans": "",
    "retention": "retention/orphans",
    "running": "",
    "running/rewrites": "running",
    "running/inspection": "running running/rewrites",
    "sql_text": "",
    "sql_text/rows": "sql_text",
}

# What rooms of a format use of the rest of the package where that is less than the format may.
FORMAT_USES = {
    "gate": "encodings errors gate kernels model protocol storage",
    "spark": "encodings errors model spark storage",
    "retention": "encodings errors limits model protocol storage",
}

TABLES = {"The rooms": EDGES, "Rooms within rooms": INNER_EDGES, "The rooms of a format": FORMAT_EDGES}
"""Headings of docs/architecture.md, and the edges that the table below each prints."""

LOW = {"causes", "errors", "limits", "model", "protocol", "redaction", "silence", "storage", "tasks", "policy"}
STAGES = {"plan", "execute", "verify", "publish"}
OUTSIDE = {
    "jobs": {"commands", "model"},
    "dags": {"model", "policy"},
    "plugins": {
        "api",
        "causes",
        "discovery",
        "environment",
        "errors",
        "lineage",
        "model",
        "monitoring",
        "nights",
        "notifications",
        "pages",
        "places",
        "policy",
        "readiness",
        "records",
        "redaction",
        "spark",
    },
}
"""What job scripts, DAGs and the plugin may import of the package."""

SHARED_WITH_THE_REWRITE = {
    "encodings.*": "Bytes are decoded by one code; golden files of the engines hold it to what they wrote. Not so "
    "most flat columns of Parquet: the gate has a decoder of its own, which no rewrite imports.",
    "formats.*.metadata.*": "The candidate's metadata is decoded from its staged bytes, as a reader would.",
    "formats.*.data.columns": "Columns are found by one code; Spark's own Parquet reader is the check.",
    "formats.iceberg.data.partition_values": "Refuses files; the scan and the check read the others.",
    "formats.paimon.data.*conversions": "For reads alone: the gate and the rewrite refuse files that need them.",
    "formats.paimon.data.nested_columns": "As `columns`: fields of nested columns.",
    "formats.paimon.data.physical_types": "Refuses files; no value comes from it.",
    "formats.paimon.data.stored_rows": "As `columns`: the bytes of each file format.",
    "formats.iceberg.data.stored_columns": "As `columns`: the bytes of each file format.",
    "formats.iceberg.data.orc_output": "Position deletes are encoded and decoded in one module; the gate encodes none.",
    "formats.*.data.conform": "As `columns`: types widened and nested fields found for both sides.",
    "formats.delta.data.bounds": "Statistics are parsed, not computed: the audit computes its own from the rows.",
    "formats.*.deletes.*": "Vectors and position deletes are decoded by one code; the gate calls no encoder.",
    "kernels.arrow_buffers": "Views of Arrow memory; nothing is decided there.",
    "kernels.bitmap": "Roaring bitmaps from positions and back.",
    "kernels.int96": "One Parquet encoding of times.",
    "kernels.spans": "Bounds of a footer as arrays; by them files are refused, and nothing is accepted.",
    "kernels.row_hash": "Iceberg's rewrite finds candidates of equality deletes by it, and values decide; a hash that "
    "made rows equal would show in the check, which hashes by Spark's xxhash64.",
    "kernels.flat_hash": "As `row_hash`, of flat columns.",
    "kernels.variant_[bnhs]*": "As `row_hash`, of variants, which one code decodes; the check has Spark's decoder.",
    "kernels.variant_[ae]*": "`conform` puts variants together for rewrites; the gate hashes what is stored.",
    "sql_text.literals": "Text of literals -> values.",
    "sql_text.rows.*": "A condition is parsed once; the gate evaluates it on Polars, the rewrite on Arrow.",
}
"""What the gate and a rewrite or a commit both import, above errors and stores, each with the reason."""

SHARED_WITH_THE_CHECK = {
    "encodings.*": "Bytes of metadata are decoded by one code, and files that Spark cannot read as they are.",
    "formats.*.deletes.vectors": "Spark has no decoder of deletion vectors; it anti-joins what ours decodes.",
    "formats.*.deletes.z85": "The text of Delta's vector descriptors.",
    "formats.iceberg.catalog.*": "Where a table's metadata is, its catalog states.",
}
"""What the check after publishing imports of formats beyond their metadata, each with the reason. No kernel is."""

ON_SPARK = re.compile(
    r"nightkeep\.(spark\.(session|package|exchange|query_settings|releases|view|stored_files|orc_files|shared_files)"
    r"|spark\.variant_text|retention\.orphans\.spark_sets"
    r"|checking\.(asked_rows|check|content_check|diff|expectations|own_expectations|shown_values|unit_fingerprints)"
    r"|formats\.views|formats\.\w+\.spark\.\w+|spark\.write_class_archive|api\.data_source|reading\.(pushed_filters|spark_types))"
)
SCRIPTS = {"nightkeep.spark.write_class_archive": "checking records"}
"""Modules that only `python -m` runs, and what they import beyond their room. No module imports them."""
READS = re.compile(r"nightkeep\.(api|reading)\.\w+")
"""What shows rows to people on Spark. It is no part of the check."""
HEAVY = {"pyarrow", "pyspark", "polars", "pandas", "numpy", "great_expectations", "obstore", "hdfs_native"}
GATE = re.compile(r"nightkeep\.(stages\.verify|gate(\.\w+)?|formats\.\w+\.gate(\.\w+)?)")
WRITES = re.compile(r"nightkeep\.(clustering(\.\w+)?|formats\.\w+\.(rewrite|commit|upsert)(\.\w+)?)")

BASES = {
    "AirflowPlugin",
    "BaseException",
    "BaseModel",
    "BaseOperator",
    "BaseOperatorLink",
    "Enum",
    "Exception",
    "Generic",
    "IcebergRootModel",
    "IcebergType",
    "IntEnum",
    "NamedTuple",
    "JobOperator",
    "Protocol",
    "Sequence",
    "Singleton",
    "SparkSubmitOperator",
    "StrEnum",
    "TablesOperator",
    "TypedDict",
    "SparkDataSource",
    "DataSourceReader",
    "InputPartition",
    "RestCatalog",
    "RunFacet",
    "int",
    "TyperGroup",
}
TREES = {"api/options.py", "errors.py", "operators.py", "settings.py"}
"""Modules whose classes may inherit from each other."""
RIMS = {"surprises.py", "served_calls.py", "engine_script.py", "find_tables.py", "sending.py", "emitting.py"}
"""Where a surprise must not end more than it is of: a night and what is known of a version that is published (both by
`guarded`), the process that reads for a group, the one of another engine, and a notifier
or a transport of lineage, which are anybody's code."""
MANY_VERBS = {
    "Storage",
    "LocalStorage",
    "ObjectStorage",
    "HdfsStorage",
    "MovedFolders",
    "TableView",
    "PaimonView",
    "AppendView",
    "DeltaView",
    "IcebergView",
    "KeptFiles",
    "KeptOnDisk",
    "KeptInBucket",
    "KeptInHdfs",
}
"""Protocols that have more verbs than a class should have methods, and what implements them."""


def module_name(path: Path) -> str:
    parts = path.relative_to(JOBS).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> Sequence[ast.AST]:
    return tuple(ast.walk(tree(path)))


PACKAGE = {module_name(path): path for path in sources("jobs/nightkeep")}
CODE = sources("jobs", "plugins", "dags")


def imported(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Names of modules; `from package import module` is an import of both."""
    found = set[str]()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


@cache
def named(path: Path) -> frozenset[str]:
    """Modules that are named in texts of a module which imports by name. A part in braces is any name."""
    if not any(isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") for node in nodes(path)):
        return frozenset()
    texts = {node.value for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    made = {ast.unparse(node).removeprefix("f").strip("'") for node in nodes(path) if isinstance(node, ast.JoinedStr)}
    patterns = [re.sub(r"\\{[^}]*\\}", r"\\w+", re.escape(text)) for text in made if text.startswith("nightkeep.")]
    return frozenset(texts & PACKAGE.keys()) | {
        name for name in PACKAGE for pattern in patterns if re.fullmatch(pattern, name)
    }


@cache
def imports(path: Path) -> frozenset[str]:
    """What a module names of others, also for types alone, within functions, and by texts."""
    return imported(nodes(path)) | named(path)


@cache
def within(path: Path, *kinds: type[ast.AST]) -> frozenset[int]:
    """Nodes inside of functions, or of what only a type checker sees."""
    return frozenset(
        id(inner)
        for node in nodes(path)
        if isinstance(node, kinds) and (not isinstance(node, ast.If) or ast.unparse(node.test) == "TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    )


@cache
def loads(path: Path) -> frozenset[str]:
    """What importing a module imports."""
    later = within(path, ast.If, ast.FunctionDef, ast.AsyncFunctionDef)
    return imported(node for node in nodes(path) if id(node) not in later)


@cache
def runs(path: Path) -> frozenset[str]:
    """What a module imports sooner or later: nothing that only a type checker sees."""
    typed = within(path, ast.If)
    return imported(node for node in nodes(path) if id(node) not in typed) | named(path)


def loaded(*starts: str) -> frozenset[str]:
    """Everything that importing these modules imports, packages on the way included."""
    return followed([*starts, *packages(starts)], lambda path: loads(path) | packages(loads(path)))


def reached(*starts: str) -> frozenset[str]:
    """Everything that these modules import sooner or later. Of packages on the way, what importing them imports."""
    found = followed(starts, runs)
    return found | loaded(*packages(found))


def followed(starts: Iterable[str], following: Callable[[Path], Set[str]]) -> frozenset[str]:
    found, pending = set[str](), list(starts)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += following(PACKAGE[name]) if name in PACKAGE else []
    return frozenset(found)


def packages(names: Iterable[str]) -> frozenset[str]:
    """The packages that modules are in."""
    return frozenset(".".join(parts[:n]) for name in names if (parts := name.split(".")) for n in range(1, len(parts)))


def rooms(path: Path) -> set[str]:
    """Rooms of the package that `path` imports."""
    return {name.split(".")[1] for name in imports(path) if name.startswith("nightkeep.")} & EDGES.keys()


def format_room(name: str) -> tuple[str, str] | None:
    """The format and the room of a module of a format; None for any other module, and for a format's package."""
    parts = name.split(".")
    return (parts[2], parts[3]) if parts[:2] == ["nightkeep", "formats"] and len(parts) > 3 else None


def inner_room(name: str) -> str:
    """The folder of a module, below the package."""
    parts = name.split(".")
    return "/".join(parts[1:] if is_package(name) else parts[1:-1])


def require_no_cycle(needs: Mapping[str, Set[str]]) -> None:
    """Take away what needs nothing that is left, until nothing is."""
    left = needs
    while left:
        free = {name for name, others in left.items() if not others & left.keys()}
        assert free, f"a cycle among {sorted(left)}"
        left = {name: others for name, others in left.items() if name not in free}


def is_tree(path: Path) -> bool:
    return any(path.as_posix().endswith(f"/{name}") for name in TREES)


def is_package(name: str) -> bool:
    return PACKAGE[name].name == "__init__.py"


def is_low(name: str) -> bool:
    """Whether a module decides nothing about rows: values, failures, stores."""
    return name.split(".")[1] in LOW


def is_listed(name: str, shared: Mapping[str, str]) -> bool:
    return any(fnmatchcase(name, f"nightkeep.{pattern}") for pattern in shared)


def room_rows(section: str) -> dict[str, tuple[str, set[str]]]:
    """Rows of a table of rooms: what is in each, and what it may import."""
    rows = re.findall(r"^\| `([\w/]+)` \| *(.*?) *\| (.*) \|$", section, re.MULTILINE)
    return {room: (description, set(re.findall(r"`([\w/]+)`", allowed))) for room, description, allowed in rows}


def classes(path: Path) -> Iterator[ast.ClassDef]:
    return (node for node in nodes(path) if isinstance(node, ast.ClassDef))


def test_every_module_is_in_a_room() -> None:
    assert {name.split(".")[1] for name in PACKAGE if "." in name} == EDGES.keys()
    assert {room for name in PACKAGE if (found := format_room(name)) for room in found[1:]} == FORMAT_EDGES.keys()


def test_a_module_imports_what_its_room_may() -> None:
    # One test for all modules, here and below: a test for each would take longer to begin than to run.
    for name in (name for name in PACKAGE if "." in name):
        own = name.split(".")[1]
        assert rooms(PACKAGE[name]) <= {own, *EDGES[own].split(), *SCRIPTS.get(name, "").split()}, name
        # What the package itself offers is above all rooms.
        assert {each for each in imports(PACKAGE[name]) if re.fullmatch(r"nightkeep\.\w+", each)} <= PACKAGE.keys(), (
            name
        )


def test_a_script_is_imported_by_no_module() -> None:
    assert not {name for path in PACKAGE.values() for name in imports(path)} & SCRIPTS.keys()


def test_an_import_within_a_function_has_a_reason() -> None:
    for path in CODE:
        silenced = re.findall(r"# noqa: .*PLC0415.*", path.read_text(encoding="utf-8"))
        assert not [line for line in silenced if not re.search(r"PLC0415 -- \S", line)], path


def test_a_room_of_a_format_imports_what_it_may() -> None:
    for name, (kind, room) in ((name, found) for name in PACKAGE if (found := format_room(name))):
        reached_rooms = {found for each in imports(PACKAGE[name]) if each in PACKAGE and (found := format_room(each))}
        assert reached_rooms <= {(kind, allowed) for allowed in (room, *FORMAT_EDGES[room].split())}, name
        if room in FORMAT_USES:
            assert rooms(PACKAGE[name]) <= {"formats", *FORMAT_USES[room].split()}, name


def test_a_room_within_a_room_imports_what_it_may() -> None:
    used = {room: set[str]() for room in INNER_EDGES}
    for name in (name for name in PACKAGE if inner_room(name) in used):
        used[inner_room(name)] |= {inner_room(each) for each in imports(PACKAGE[name]) & PACKAGE.keys()} & used.keys()
    of_the_same = {room: {o for o in others if o.split("/")[0] == room.split("/")[0]} for room, others in used.items()}
    assert {room: others - {room} for room, others in of_the_same.items()} == {
        room: set(allowed.split()) for room, allowed in INNER_EDGES.items()
    }


def test_a_room_imports_all_that_it_may() -> None:
    """An edge that nothing uses would let a later import pass unseen."""
    used = {room: set[str]() for room in EDGES}
    for name in PACKAGE.keys() - SCRIPTS.keys() - {"nightkeep"}:
        used[name.split(".")[1]] |= rooms(PACKAGE[name]) - {name.split(".")[1]}
    assert used == {room: set(allowed.split()) for room, allowed in EDGES.items()}


@pytest.mark.parametrize("edges", [EDGES, FORMAT_EDGES, INNER_EDGES], ids=["package", "format", "inner"])
def test_rooms_have_no_cycle(edges: Mapping[str, str]) -> None:
    require_no_cycle({name: set(allowed.split()) for name, allowed in edges.items()})


def test_modules_have_no_cycle() -> None:
    left = {name: (imports(path) & PACKAGE.keys()) - {name} for name, path in PACKAGE.items()}
    # A package whose __init__ names its modules is imported on the way to each of them.
    left = {name: {other for other in needs if not name.startswith(f"{other}.")} for name, needs in left.items()}
    require_no_cycle(left)


def test_modules_of_the_plugin_have_no_cycle() -> None:
    paths = {f"nightkeep_airflow.{path.stem}": path for path in sources("plugins")}
    require_no_cycle({name: imports(path) & paths.keys() for name, path in paths.items()})


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_no_stage_imports_another(stage: str) -> None:
    others = {f"nightkeep.stages.{other}" for other in STAGES - {stage}}
    assert not reached(f"nightkeep.stages.{stage}") & others


@pytest.mark.parametrize("folder", OUTSIDE)
def test_what_surrounds_the_package_imports_little_of_it(folder: str) -> None:
    for path in (ROOT / folder).glob("*.py") if folder == "jobs" else sources(folder):
        assert rooms(path) <= OUTSIDE[folder], path


def test_nothing_under_jobs_knows_airflow() -> None:
    assert not [path for path in sources("jobs") if any(name.startswith("airflow") for name in imports(path))]


def test_spark_is_imported_where_it_runs() -> None:
    on_spark = [name for name, path in PACKAGE.items() if "pyspark" in {i.split(".")[0] for i in loads(path)}]
    assert on_spark and not [name for name in on_spark if not ON_SPARK.fullmatch(name)]
    assert not [name for name in loaded("nightkeep.commands.app", "nightkeep.commands.job") if ON_SPARK.fullmatch(name)]


def test_modules_that_are_named_in_texts_exist() -> None:
    named = set[str]()
    for node in (node for path in CODE for node in nodes(path)):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if isinstance(node, ast.JoinedStr):
            text = ast.unparse(node).removeprefix("f").strip("'")
        if re.fullmatch(r"nightkeep(\.\w+|\.\{name\})+", text) and text.split(".")[1] in EDGES:
            named |= {text.replace("{name}", each) for each in ("delta", "iceberg", "paimon")}
    assert named and not named - PACKAGE.keys()


def test_what_dags_parse_is_light() -> None:
    assert not loaded(*(f"nightkeep.{room}" for room in ("discovery", "model", "pages", "policy", "records"))) & HEAVY


def test_the_gate_reaches_no_rewrite_and_no_commit() -> None:
    starts = [name for name in PACKAGE if GATE.fullmatch(name)]
    assert {room[0] for name in starts if (room := format_room(name))} == {"delta", "iceberg", "memory", "paimon"}
    assert not [name for name in reached(*starts) if WRITES.fullmatch(name)]


def test_what_the_gate_shares_with_a_rewrite_is_listed() -> None:
    gate = reached(*(name for name in PACKAGE if GATE.fullmatch(name)))
    rewrite = reached(*(name for name in PACKAGE if WRITES.fullmatch(name) and ".upsert" not in name))
    shared = {name for name in gate & rewrite & PACKAGE.keys() if not is_package(name) and not is_low(name)}
    assert not [name for name in shared if not is_listed(name, SHARED_WITH_THE_REWRITE)]
    assert "nightkeep.encodings.polars_rows" in gate - rewrite
    unused = [each for each in SHARED_WITH_THE_REWRITE if not any(is_listed(name, {each: ""}) for name in shared)]
    assert not unused


def test_the_check_shares_no_kernel_and_little_else() -> None:
    starts = [name for name in PACKAGE if ON_SPARK.fullmatch(name) and not READS.fullmatch(name)]
    found = {name for name in reached(*starts) & PACKAGE.keys() if not is_package(name)}
    assert not [name for name in found if name.startswith("nightkeep.kernels.") or WRITES.fullmatch(name)]
    rooms_of_formats = {name for name in found if (room := format_room(name)) and room[1] not in ("metadata", "spark")}
    encodings = {name for name in found if name.startswith("nightkeep.encodings.")}
    assert not [name for name in rooms_of_formats | encodings if not is_listed(name, SHARED_WITH_THE_CHECK)]


def test_a_module_and_its_functions_stay_small() -> None:
    for path in CODE:
        assert len(path.read_text().splitlines()) <= 350, path
        functions = [node for node in nodes(path) if isinstance(node, ast.FunctionDef)]
        assert not [f.name for f in functions if (f.end_lineno or 0) - f.lineno >= 60], path


def test_names_state_what_a_thing_is() -> None:
    for path in CODE:
        assert not re.fullmatch(r"_?(utils?|common|helpers?|base|misc|core|managers?|handlers?)", path.stem), path
        silent = r"(Manager|Handler|Helper|Utils?|Impl|Base)$"
        assert not [c.name for c in classes(path) if re.search(silent, c.name)], path


def test_a_class_has_a_name_of_its_own() -> None:
    names = Counter(
        node.name
        for path in sources("jobs", "plugins")
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in sorted(names.items()) if count > 1] == []


def test_classes_inherit_little_and_do_little() -> None:
    for path in CODE:
        bases = {ast.unparse(base).split("[")[0] for c in classes(path) for base in c.bases}
        own = {c.name for c in classes(path)} if is_tree(path) else set()
        assert bases <= BASES | own, path
    for c in (c for path in CODE for c in classes(path)):
        verbs = [f.name for f in c.body if isinstance(f, ast.FunctionDef) and not f.name.startswith("_")]
        assert len(verbs) <= 7 or c.name in MANY_VERBS, c.name


def test_only_the_rim_catches_everything() -> None:
    """A handler that raises again is cleaning up, not catching."""
    for path in (path for path in CODE if path.name not in RIMS):
        handlers = [node for node in nodes(path) if isinstance(node, ast.ExceptHandler)]
        broad = [h for h in handlers if h.type is None or ast.unparse(h.type) in ("Exception", "BaseException")]
        assert all(isinstance(h.body[-1], ast.Raise) for h in broad), path


def test_kernels_never_walk_rows() -> None:
    walks = {"to_pylist", "iterrows", "itertuples", "iter_rows", "map_elements", "apply", "udf", "vectorize"}
    for path in sources("jobs/nightkeep/kernels"):
        found = {node.attr for node in nodes(path) if isinstance(node, ast.Attribute)}
        assert not found & walks, path


def test_what_is_written_is_ascii_and_names_no_machine() -> None:
    written = sources("jobs", "plugins", "dags", "tests", "samples", "benches", "docs_tools")
    written += [
        path for glob in ("*.*", "Makefile", "dags/*", "docs/**/*.md", "samples/*.md") for path in ROOT.glob(glob)
    ]
    for path in (path for path in written if path.is_file() and not path.name.startswith(".")):
        text = path.read_bytes()
        assert text.isascii(), path
        assert not re.search(rb"/(work|root|home|Users)/", text), path


@pytest.mark.parametrize(("heading", "edges"), TABLES.items())
def test_the_page_states_who_may_import_whom(heading: str, edges: Mapping[str, str]) -> None:
    """`python -m tests.support.rooms_page` writes the tables; what is in a new room is said by hand."""
    rows = room_rows(PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0])
    assert {room: allowed for room, (_, allowed) in rows.items()} == {r: set(e.split()) for r, e in edges.items()}
    assert all(description for description, _ in rows.values())
    above = set[str]()
    for room, (_, allowed) in rows.items():
        assert not allowed & above, f"{room}: expected imports of rows below it alone, found {allowed & above}"
        above.add(room)
