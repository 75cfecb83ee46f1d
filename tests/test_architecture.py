"""The shape of the code, read from its sources: who may import whom, and what must not appear at all."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
JOBS = ROOT / "jobs"
NIGHT = JOBS / "nightkeep"

# Component of the package -> the components it may import, besides itself and the package's version.
EDGES = {
    "redaction": "",
    "errors": "redaction",
    "model": "",
    "literals": "",
    "limits": "errors",
    "storage": "errors limits",
    "protocol": "model",
    "territory": "errors model storage",
    "sweep": "errors model session storage tasks territory",
    "queries": "errors literals",
    "proof_parts": "",
    "layout": "kernels model protocol",
    "advise": "errors kernels layout literals model protocol queries",
    "tasks": "model",
    "relation": "errors model storage",
    "where": "errors literals",
    "policy": "errors model",
    "report": "errors model redaction",
    "kernels": "model",
    "encodings": "errors kernels limits",
    "clustering": "errors kernels model protocol",
    "rows": "errors literals",
    "formats": "clustering encodings errors kernels layout limits model proof_parts protocol redaction relation rows "
    "storage territory",
    "standing": "model protocol",
    "plan": "errors model protocol where",
    "execute": "model protocol tasks",
    "verify": "errors kernels model protocol rows standing tasks",
    "publish": "errors model protocol standing",
    "facts": "model relation",
    "expectations": "report",
    "check": "diff errors expectations facts model relation report",
    "diff": "errors facts model relation report",
    "spark_conf": "",
    "session": "errors spark_conf",
    "exchange": "errors session tasks",
    "resources": "errors spark_conf",
    "engine": "errors formats resources sweep tasks",
    "software": "",
    "tally": "model protocol report",
    "waiting": "errors policy report",
    "run_ids": "errors model report",
    "unpublished": "errors model protocol territory",
    "undone": "model protocol report",
    "run_log": "model policy report run_ids software",
    "outcomes": "errors model protocol report run_log tally",
    "reading": "model policy protocol rows run_log",
    "care": "errors execute formats model outcomes plan policy protocol publish reading report rows run_ids run_log "
    "standing tally tasks undone unpublished verify waiting",
    "apart": "errors limits redaction",
    "opinion": "engine formats model policy report",
    "expire": "errors model sweep territory",
    "presence": "errors storage sweep territory",
    "contents": "check errors expectations facts model relation",
    "upkeep": "engine errors expire formats model policy presence protocol report run_ids software sweep territory "
    "waiting",
    "group": "errors policy",
    "at_death": "errors group model report",
    "night": "apart at_death care engine errors formats group model opinion policy reading report script software "
    "sweep upkeep",
    "apply": "engine errors formats model policy redaction script tasks",
    "script": "errors model redaction",
    "job": "engine errors group model night policy redaction script",
    "statement": "errors model policy",
    "commands": "advise care engine errors formats layout model night policy queries report statement sweep upkeep",
    "cli": "commands errors script",
    "__main__": "cli",
}
STAGES = {"plan", "execute", "verify", "publish", "check"}
OUTSIDE = {
    "jobs": {"apply", "job", "model", "script"},
    "dags": {"model", "policy"},
    "plugins": {"errors", "model", "policy", "redaction", "report", "spark_conf"},
}
"""What job scripts, DAGs and the plugin may import of the package."""

ON_SPARK = re.compile(
    r"nightkeep\.(session|exchange|sweep\.on_spark|check|contents|diff|facts|expectations|relation"
    r"|formats\.\w+\.relation\w*)"
)
HEAVY = {"pyarrow", "pyspark", "polars", "pandas", "numpy", "great_expectations"}
REWRITES = re.compile(
    r"nightkeep\.(kernels\.(lookup|merge|stats|key_\w+|curve|ranks|equality)"
    r"|rows\.arrow_truth"
    r"|clustering\b"
    r"|formats\.\w+\.(delete\b|lookup|rewrite|gather|write|stats|optimize|cluster\w*|cubes|live_rows|wide"
    r"|persist\w*|probes|hidden_rows|live_set|staging))"
)

BASES = {
    "AirflowPlugin", "BaseModel", "BaseOperatorLink", "Enum", "Exception", "Generic", "IntEnum", "NamedTuple",
    "Protocol", "SparkSubmitOperator", "StrEnum",
}  # fmt: skip
TREES = {"errors.py", "operators.py", "protocol.py", "settings.py", "territory.py"}
"""Modules whose classes may inherit from each other."""
RIMS = {"night.py", "check.py", "apart.py"}
"""Where a surprise must not end more than it is of: a night, what is known of a version that is published, and the
process that reads for a group."""
MANY_VERBS = {
    "Reads", "Writes", "Storage", "LocalStorage", "DeltaTable", "IcebergTable", "MemoryTable", "PaimonTable",
    "Relation", "PaimonRelation", "DeltaRelation", "IcebergRelation", "ObjectStorage",
}  # fmt: skip
"""Protocols that have more verbs than a class should have methods, and what implements them."""


def module_name(path: Path) -> str:
    parts = path.relative_to(JOBS).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


PACKAGE = {module_name(path): path for path in sources("jobs/nightkeep")}
CODE = sources("jobs", "plugins", "dags")
each_module = pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))


@cache
def imports(path: Path) -> frozenset[str]:
    """Names of modules; `from package import module` is an import of both."""
    found = {alias.name for node in ast.walk(tree(path)) if isinstance(node, ast.Import) for alias in node.names}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


def reached(*starts: str) -> frozenset[str]:
    """Everything that importing these modules imports, packages on the way included."""
    pending, seen = list(starts), set[str]()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += [name.rpartition(".")[0]] if "." in name else []
            pending += imports(PACKAGE[name]) if name in PACKAGE else []
    return frozenset(seen)


def components(path: Path) -> set[str]:
    """Components of the package that `path` imports."""
    return {name.split(".")[1] for name in imports(path) if name.startswith("nightkeep.")} & EDGES.keys()


def classes(path: Path) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef))


def test_every_component_has_its_place() -> None:
    assert {name.split(".")[1] for name in PACKAGE if "." in name} == EDGES.keys()


@pytest.mark.parametrize("name", PACKAGE)
def test_a_module_imports_what_its_component_may(name: str) -> None:
    if "." in name:
        own = name.split(".")[1]
        assert components(PACKAGE[name]) <= {own, *EDGES[own].split()}


def test_imports_have_no_cycle_and_no_stage_needs_another() -> None:
    edges = {name: set(allowed.split()) for name, allowed in EDGES.items()}
    assert not [name for name in STAGES if edges[name] & STAGES]
    while edges:
        free = {name for name, needs in edges.items() if not needs & edges.keys()}
        assert free, f"a cycle among {sorted(edges)}"
        edges = {name: needs for name, needs in edges.items() if name not in free}


def test_no_format_imports_another() -> None:
    for name, path in PACKAGE.items():
        others = {other.split(".")[2] for other in imports(path) if other.startswith("nightkeep.formats.")}
        if name.startswith("nightkeep.formats."):
            assert others <= {name.split(".")[2]}, name


@pytest.mark.parametrize("folder", OUTSIDE)
def test_what_surrounds_the_package_imports_little_of_it(folder: str) -> None:
    for path in (ROOT / folder).glob("*.py") if folder == "jobs" else sources(folder):
        assert components(path) <= OUTSIDE[folder], path


def test_nothing_under_jobs_knows_airflow() -> None:
    assert not [path for path in sources("jobs") if any(name.startswith("airflow") for name in imports(path))]


def test_spark_is_imported_where_it_runs() -> None:
    on_spark = [name for name, path in PACKAGE.items() if "pyspark" in {i.split(".")[0] for i in imports(path)}]
    assert on_spark and not [name for name in on_spark if not ON_SPARK.fullmatch(name)]
    assert not [name for name in reached("nightkeep.cli", "nightkeep.job") if ON_SPARK.fullmatch(name)]


def test_what_dags_parse_is_light() -> None:
    assert not reached("nightkeep.policy", "nightkeep.model", "nightkeep.report") & HEAVY


@pytest.mark.parametrize(
    "name",
    ["verify", *(f"formats.{name}.{part}" for name in ("paimon", "delta", "iceberg") for part in ("scan", "audit"))],
)
def test_the_gate_shares_no_code_with_the_rewrite(name: str) -> None:
    assert not [other for other in reached(f"nightkeep.{name}") if REWRITES.match(other)]


def test_the_second_opinion_shares_no_kernel_at_all() -> None:
    starts = [name for name in PACKAGE if ON_SPARK.fullmatch(name)]
    assert not [other for other in reached(*starts) if other.startswith("nightkeep.kernels.") or REWRITES.match(other)]


@each_module
def test_a_module_and_its_functions_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 300
    functions = [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef)]
    assert not [f.name for f in functions if (f.end_lineno or 0) - f.lineno >= 50]


@each_module
def test_names_say_what_a_thing_is(path: Path) -> None:
    assert not re.fullmatch(r"_?(utils?|common|helpers?|base|misc|core|managers?|handlers?)", path.stem)
    assert not [c.name for c in classes(path) if re.search(r"(Manager|Handler|Helper|Utils?|Impl|Base)$", c.name)]


@each_module
def test_classes_inherit_little_and_do_little(path: Path) -> None:
    bases = {ast.unparse(base).split("[")[0] for c in classes(path) for base in c.bases}
    own = {c.name for c in classes(path)} if path.name in TREES else set()
    assert bases <= BASES | own
    for c in classes(path):
        verbs = [f.name for f in c.body if isinstance(f, ast.FunctionDef) and not f.name.startswith("_")]
        assert len(verbs) <= 7 or c.name in MANY_VERBS, c.name


@each_module
def test_only_the_rim_catches_everything(path: Path) -> None:
    """A handler that raises again is cleaning up, not catching."""
    handlers = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ExceptHandler)]
    broad = [h for h in handlers if h.type is None or ast.unparse(h.type) in ("Exception", "BaseException")]
    assert path.name in RIMS or all(isinstance(h.body[-1], ast.Raise) for h in broad)


def test_kernels_never_walk_rows() -> None:
    walks = {"to_pylist", "iterrows", "itertuples", "iter_rows", "map_elements", "apply", "udf", "vectorize"}
    for path in sources("jobs/nightkeep/kernels"):
        found = {node.attr for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)}
        assert not found & walks, path


def test_what_is_written_is_ascii_and_names_no_machine() -> None:
    written = sources("jobs", "plugins", "dags", "tests", "samples", "benches")
    written += [
        path for glob in ("*.*", "Makefile", "dags/*", "docs/**/*.md", "samples/*.md") for path in ROOT.glob(glob)
    ]
    for path in (path for path in written if path.is_file() and not path.name.startswith(".")):
        text = path.read_bytes()
        assert text.isascii(), path
        assert not re.search(rb"/(work|root|home|Users)/", text), path
