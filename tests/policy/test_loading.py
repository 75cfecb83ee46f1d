"""A policy of several files and entries: what a fault concerns, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightkeep.errors import AddressError, PolicyError
from nightkeep.policy import PolicyFile, faults_of, load, load_usable
from nightkeep.policy.address import same_place
from nightkeep.policy.document import DEPTH, Discovery, TeamDocument
from nightkeep.policy.entries import read_entries


def policy(folder: Path, text: str, **files: str) -> PolicyFile:
    (folder / "teams").mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / "teams" / f"{name}.yaml").write_text(content)
    (folder / "tables.yaml").write_text(f"version: 1\n{text}")
    return load_usable(folder / "tables.yaml", environ={})


def names(loaded: PolicyFile) -> tuple[list[str], list[str]]:
    return [each.name for each in loaded.tables], [each.name for each in loaded.unusable]


@pytest.mark.parametrize(
    ("bad", "name", "fault"),
    [
        ("{name: bad, table: delta:/bad, tarwget: 3}", "bad", "tables[1].tarwget: unknown key"),
        ("{name: bad, table: delta:/bad, sweep: {older_than: soon}}", "bad", "tables[1].sweep.older_than: expected"),
        ("{name: bad, table: 'delta:${NK_UNSET}/bad'}", "bad", "environment variable NK_UNSET to be set"),
        ("{table: delta:/bad}", "tables.yaml tables[1]", "tables[1].name: expected this key, found none"),
        ("3", "tables.yaml tables[1]", "tables[1]: expected a mapping of settings"),
        ("{name: bad, table: delta:/bad, expectations: gone.json}", "bad", "expected a suite of Great Expectations"),
    ],
)
def test_a_bad_entry_concerns_its_own_table(tmp_path: Path, bad: str, name: str, fault: str) -> None:
    text = f"tables:\n  - {{name: a, table: delta:/a}}\n  - {bad}\n  - {{name: c, table: delta:/c, full: true}}\n"
    loaded = policy(tmp_path, text)
    assert names(loaded) == (["a", "c"], [name])
    assert loaded.effective("c").settings.full and str(loaded.effective("c").origins["full"]).endswith("5  table c")
    (found,) = faults_of(loaded)
    assert found.startswith(f"{tmp_path}/tables.yaml:4: ") and fault in found
    with pytest.raises(PolicyError, match=r"tables\.yaml:4"):
        load(tmp_path / "tables.yaml", environ={})


def test_the_place_of_a_bad_entry_is_known_where_it_can_be(tmp_path: Path) -> None:
    loaded = policy(tmp_path, "tables: [{name: a, table: delta:x, full: 3}, {name: b, table: 'delta:${NK_UNSET}'}]")
    known = {each.name: each.address for each in loaded.unusable}
    assert known["b"] is None and known["a"] is not None and same_place(known["a"]) == ("delta", f"{tmp_path}/x")


@pytest.mark.parametrize("bad", ["operations: [optimise]", "sweep: {mode: dlete}", "expectations: gone.json"])
def test_a_bad_pattern_concerns_the_tables_that_it_matches(tmp_path: Path, bad: str) -> None:
    text = f"patterns:\n  - {{match: 'shop.*', {bad}}}\n  - {{match: '*', full: true}}\n"
    text += "tables:\n  - {name: shop.a, table: delta:/a}\n  - {name: lake.b, table: delta:/b}\n"
    loaded = policy(tmp_path, text)
    assert names(loaded) == (["lake.b"], ["shop.a"])
    assert loaded.effective("lake.b").settings.full
    with pytest.raises(PolicyError, match=r"tables.yaml:3: patterns\[0\]"):
        loaded.effective("shop.a")
    with pytest.raises(PolicyError, match=r"tables.yaml:3: patterns\[0\]"):
        loaded.effective("delta:/shop.db/unlisted")


def test_a_pattern_without_a_glob_concerns_every_table(tmp_path: Path) -> None:
    loaded = policy(tmp_path, "patterns: [{full: true}]\ntables: [{name: a, table: delta:/a}]")
    assert names(loaded) == ([], ["a"])


def test_bad_defaults_concern_the_whole_file_and_all_faults_are_reported(tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        policy(tmp_path, "tables: [{name: 3, table: delta:/a}]\ndefaults: {full: 3}\n")
    assert [line.split(": ")[1] for line in str(caught.value).split("\n")] == ["tables[0].name", "defaults.full"]


def test_of_two_entries_for_one_table_none_states_what_holds(tmp_path: Path) -> None:
    team = "tables:\n  - {name: theirs, table: delta:/a}\n  - {name: own, table: delta:/own}\n"
    text = "imports: [teams/*.yaml]\ntables: [{name: a, table: delta:/a}, {name: c, table: delta:/c}]"
    loaded = policy(tmp_path, text, team=team)
    assert names(loaded) == (["c", "own"], ["a", "theirs"])
    (fault,) = faults_of(loaded)
    where = f"{tmp_path}/teams/team.yaml:2: table delta:/a: expected once, found before in {tmp_path}/tables.yaml"
    assert fault.startswith(where)


def test_a_team_writes_patterns_for_its_own_tables_alone(tmp_path: Path) -> None:
    team = "patterns: [{match: '*', full: true}]\ntables: [{name: shop.b, table: delta:b}]\n"
    text = "imports: ['teams/*.yaml']\npatterns: [{match: 'shop.*', operations: [optimize]}]\n"
    loaded = policy(tmp_path, f"{text}tables: [{{name: shop.a, table: delta:a}}]", team=team)
    ours, theirs = loaded.effective("shop.a"), loaded.effective("shop.b")
    assert (ours.settings.full, theirs.settings.full) == (False, True)
    assert ours.settings.operations == theirs.settings.operations == ("optimize",)
    # A path starts at the folder of its own file, and an origin names it.
    assert theirs.address.location == f"{tmp_path}/teams/b"
    assert str(theirs.origins["full"]) == f"{tmp_path}/teams/team.yaml:1  pattern *"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("tables: [", "expected YAML"),
        ("defaults: {full: true}", "teams/bad.yaml:1: defaults: unknown key"),
        ("imports: [more.yaml]", "teams/bad.yaml:1: imports: unknown key"),
        ("version: 2", "teams/bad.yaml:1: version: expected 1"),
    ],
)
def test_an_import_that_cannot_be_read_concerns_its_own_tables(tmp_path: Path, content: str, fault: str) -> None:
    text = "imports: ['teams/*.yaml', gone.yaml, 'none/*.yaml', 3]\ntables: [{name: a, table: delta:/a}]"
    loaded = policy(tmp_path, text, bad=content, good="tables: [{name: b, table: delta:/b}]")
    unreadable = ["tables.yaml imports[3]", "import teams/bad.yaml", "import gone.yaml"]
    assert names(loaded) == (["a", "b"], unreadable)
    assert fault in str(faults_of(loaded)) and f"{tmp_path}/gone.yaml:1: expected a policy file" in str(
        faults_of(loaded)
    )
    assert loaded.warnings == (f"{tmp_path}/tables.yaml:2: imports[2]: no file matches none/*.yaml",)


def test_a_file_is_imported_once(tmp_path: Path) -> None:
    loaded = policy(
        tmp_path, "imports: [teams/a.yaml, 'teams/*', tables.yaml]", a="tables: [{name: a, table: delta:/a}]"
    )
    assert names(loaded) == (["a"], [])


DISCOVER = """\
discover:
  - paimon: ${LAKE:-/lake}/paimon
    include: ["shop.*"]
    exclude: ["*.tmp_*"]
  - {delta: lake, depth: 2, name: "lake.{table}"}
  - {iceberg: prod, name: "{database}/{table}"}
  - {hive: "thrift://meta:9083"}
  - {glue: eu-central-1}
"""


def test_places_to_look_at_are_read_and_nothing_is_listed(tmp_path: Path) -> None:
    loaded = policy(tmp_path, DISCOVER)
    told = [(each.name, each.kind, each.location, each.depth, each.origin.line) for each in loaded.discoveries]
    assert told == [
        ("discover paimon:${LAKE:-/lake}/paimon", "paimon", "/lake/paimon", DEPTH, 3),
        ("discover delta:lake", "delta", f"{tmp_path}/lake", 2, 6),
        ("discover iceberg:prod", "iceberg", "prod", DEPTH, 7),
        ("discover hive:thrift://meta:9083", "hive", "thrift://meta:9083", DEPTH, 8),
        ("discover glue:eu-central-1", "glue", "glue://eu-central-1", DEPTH, 9),
    ]
    paimon, delta, iceberg, *_ = loaded.discoveries
    assert paimon.takes(("shop", "orders")) and not paimon.takes(("shop", "tmp_1"))
    assert not paimon.takes(("crm", "orders"))
    assert paimon.name_of(("shop", "orders")) == "shop.orders"
    assert delta.name_of(("a.b", "c")) == "lake.c" and iceberg.name_of(("a", "b", "c")) == "a.b/c"
    assert delta.may_name("lake.x") and not delta.may_name("shop.x") and paimon.may_name("any")
    assert isinstance(paimon, Discovery)


@pytest.mark.parametrize(
    ("entry", "name", "fault"),
    [
        ("{paimon: /w, delta: /w}", "discover paimon:/w", "expected one of paimon, delta, iceberg, hive, glue, found"),
        ("{include: ['*']}", "discover tables.yaml discover[0]", "found none"),
        ("{paimon: /w, depth: 2}", "discover paimon:/w", "expected depth only with delta"),
        ("{paimon: '${NK_UNSET}/w'}", "discover paimon:${NK_UNSET}/w", "environment variable NK_UNSET to be set"),
        ("{delta: /w, includ: ['*']}", "discover delta:/w", "discover[0].includ: unknown key; did you mean include?"),
        ("{delta: /w, name: all}", "discover delta:/w", "discover[0].name: expected text with {name}"),
        ("{delta: /w, name: '{name}{x}'}", "discover delta:/w", "discover[0].name: expected text with {name}"),
        ("{hive: 'meta:9083'}", "discover hive:meta:9083", "expected thrift://HOST:PORT, found 'meta:9083'"),
        ("{hive: 'thrift://u:p@m:9083'}", "discover hive:thrift://", "expected thrift://HOST:PORT, found"),
        ("{glue: EU}", "discover glue:EU", "expected a region such as eu-central-1, found 'EU'"),
        ("{delta: s3://key:secret@bucket/w}", "discover delta:s3://", "credentials belong into the environment"),
    ],
)
def test_a_bad_place_concerns_the_tables_that_are_there(tmp_path: Path, entry: str, name: str, fault: str) -> None:
    loaded = policy(tmp_path, f"discover: [{entry}, {{delta: /other}}]\ntables: [{{name: a, table: delta:/a}}]")
    assert [each.name for each in loaded.discoveries] == ["discover delta:/other"]
    (unusable,) = loaded.unusable
    assert unusable.name.startswith(name) and fault in unusable.fault and "secret" not in unusable.name
    assert unusable.fault.startswith(f"{tmp_path}/tables.yaml:2: discover[0]")
    assert names(loaded)[0] == ["a"]


def test_a_name_that_no_file_has_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(AddressError, match=r"found neither; did you mean shop\.a"):
        policy(tmp_path, "tables: [{name: shop.a, table: delta:/a}]").effective("shop.b")


def test_entries_keep_their_places_beside_faulty_ones(tmp_path: Path) -> None:

    text = "tables:\n- {name: a}\n- {name: b, table: delta:/b}\n"
    read = read_entries("t.yaml", text, TeamDocument)
    assert read.places["tables"] == (1,) and [each.location for each in read.faulty] == [("tables", 0)]
