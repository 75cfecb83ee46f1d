"""tables.yaml as people write it: what holds for a table, where each value came from, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tests.policy.schema import policy_schema

import nightkeep.policy
from nightkeep.errors import AddressError, PolicyError, UsageError
from nightkeep.model import Address, Clustering, Curve, Operation, VerifyLevel, Writers
from nightkeep.model.receivers import EventKind
from nightkeep.model.sweep_rules import DAY_MS, floor_ms
from nightkeep.policy import (
    Check,
    Overrides,
    PolicyFile,
    Preset,
    Settings,
    Sweep,
    explain_text,
    format_duration,
    format_size,
    groups,
    json_schema,
    load,
    parse_duration,
    parse_size,
    parse_window,
)

ROOT = Path(__file__).parents[2]
MB, GB = 1 << 20, 1 << 30
HOUR = 3_600_000


def policy(text: str, environ: dict[str, str] | None = None) -> PolicyFile:
    return load("/etc/care/tables.yaml", text="version: 1\n" + dedent(text), environ=environ or {})


def refusal(text: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(PolicyError) as caught:
        policy(text, environ)
    return str(caught.value)


LAYERED = """\
    defaults:
      verify: touched
      task_memory: 1GB
      check: {byte_budget: 1GB}
    patterns:
      - match: "shop.*"
        target_size: 64MB
        check:
          byte_budget: 2GB
      - match: "shop.ord*"
        task_memory: 3GB
      - match: "*"
        target_size: 1MB
        task_memory: 9GB
    tables:
      - name: shop.orders
        table: paimon:/w/shop.db/orders
        check: {enabled: false}
      - name: lab.orders
        table: delta:/lake/orders
"""


def test_layers_merge_field_by_field_into_nested_blocks() -> None:
    settings = policy(LAYERED).effective("shop.orders").settings
    assert settings.verify is VerifyLevel.TOUCHED
    assert settings.task_memory == 3 * GB
    assert settings.target_size == 64 * MB
    assert settings.check == Check.model_construct(enabled=False, byte_budget=2 * GB)


def test_every_value_names_its_line_and_layer() -> None:
    origins = policy(LAYERED).effective("shop.orders").origins
    found = {key: (origin.line, origin.layer) for key, origin in origins.items()}
    assert found == {
        "preset": (None, "built-in"),
        "operations": (None, "built-in"),
        "pause": (None, "built-in"),
        "window": (None, "built-in"),
        "when": (None, "built-in"),
        "where": (None, "built-in"),
        "full": (None, "built-in"),
        "respec": (None, "built-in"),
        "target_size": (8, "pattern shop.*"),
        "min_file_size": (None, "built-in"),
        "max_deleted_ratio": (None, "built-in"),
        "clustering": (None, "built-in"),
        "commit_size": (None, "built-in"),
        "exchange_above": (None, "built-in"),
        "task_memory": (12, "pattern shop.ord*"),
        "spark": (None, "built-in"),
        "verify": (3, "defaults"),
        "allow_compacting_writers": (None, "built-in"),
        "other_managers": (None, "built-in"),
        "writers": (None, "built-in"),
        "check.enabled": (19, "table shop.orders"),
        "check.byte_budget": (10, "pattern shop.*"),
        "check.join_budget": (None, "built-in"),
        "check.keys_budget": (None, "built-in"),
        "check.keys": (None, "built-in"),
        "check.reader": (None, "built-in"),
        "check.evidence": (None, "built-in"),
        "check.expectations_on": (None, "built-in"),
        "check.results_context": (None, "built-in"),
        "expectations": (None, "built-in"),
        "sweep.mode": (None, "built-in"),
        "sweep.older_than": (None, "built-in"),
        "sweep.max_share": (None, "built-in"),
        "sweep.purge_after": (None, "built-in"),
        "sweep.list_every": (None, "built-in"),
        "sweep.outside": (None, "built-in"),
        "expire.enabled": (None, "built-in"),
        "expire.older_than": (None, "built-in"),
        "expire.retain_last": (None, "built-in"),
        "audit.hold": (None, "built-in"),
        "audit.files": (None, "built-in"),
        "audit.sample": (None, "built-in"),
        "audit.byte_budget": (None, "built-in"),
        **dict.fromkeys((f"on.{each}" for each in EventKind), (None, "built-in")),
    }


def test_a_more_specific_pattern_wins_wherever_it_stands() -> None:
    text = """\
        patterns:
          - {match: "a.b*", target_size: 3MB}
          - {match: "a.*", target_size: 2MB}
          - {match: "*", target_size: 1MB}
        tables:
          - {name: a.bc, table: "delta:/x"}
          - {name: a.c, table: "delta:/y"}
          - {name: z, table: "delta:/z"}
    """
    sizes = [policy(text).effective(name).settings.target_size for name in ("a.bc", "a.c", "z")]
    assert sizes == [3 * MB, 2 * MB, MB]


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        ("log_?", "log_*", "1MB"),
        ("log_*", "log_?", "2MB"),
        ("log_[ab]", "log_?", "2MB"),
        ("*_a", "log*", "2MB"),
        ("log_a", "log_*", "1MB"),
    ],
)
def test_ties_go_to_fewer_stars_and_then_to_the_later_one(first: str, second: str, winner: str) -> None:
    text = f"""\
        patterns:
          - {{match: "{first}", target_size: 1MB}}
          - {{match: "{second}", target_size: 2MB}}
        tables: [{{name: log_a, table: "delta:/x"}}]
    """
    assert policy(text).effective("log_a").settings.target_size == parse_size(winner)


def test_null_takes_back_what_a_lower_layer_set() -> None:
    text = """\
        defaults: {pause: "warehouse is moving", where: "dt > '2026-01-01'"}
        tables: [{name: a, table: "delta:/a", pause: null}]
    """
    effective = policy(text).effective("a")
    assert effective.settings.pause is None
    assert effective.origins["pause"].layer == "table a"
    assert effective.settings.where == "dt > '2026-01-01'"


def test_a_preset_stands_below_every_explicit_value() -> None:
    text = """\
        defaults: {task_memory: 4GB}
        tables: [{name: a, table: "delta:/a", preset: gentle}]
    """
    effective = policy(text).effective("a")
    assert effective.settings.preset is Preset.GENTLE
    assert effective.settings.verify is VerifyLevel.TOUCHED
    assert str(effective.origins["verify"]) == "/etc/care/tables.yaml:3  preset gentle"
    assert effective.settings.task_memory == 4 * GB


def test_the_preset_of_the_highest_layer_is_the_only_one_expanded() -> None:
    text = """\
        defaults: {preset: gentle}
        tables: [{name: a, table: "delta:/a", preset: thorough}]
    """
    settings = policy(text).effective("a").settings
    assert (settings.full, settings.verify) == (True, VerifyLevel.FULL)


def test_a_policy_of_one_line_is_the_balanced_preset() -> None:
    settings = policy("").effective("paimon:/w/shop.db/orders").settings
    assert settings == Settings()
    assert policy("defaults: {preset: balanced}").effective("delta:/x").settings == Settings()


def test_all_settings_can_be_written() -> None:
    text = """\
        tables:
          - name: a
            table: paimon:/a
            preset: balanced
            operations: [optimize, upgrade]
            pause: being restored
            window: 22:30-06:00 Europe/Berlin
            when: {optimize: {any: [small_files > 20, "deleted_ratio > 5%"]}, upgrade: level0_age_ms >= 2h}
            where: dt = '2026-01-01'
            full: true
            respec: false
            target_size: 256MiB
            min_file_size: 100MB
            max_deleted_ratio: 0.2
            clustering: {hilbert: [day, place.lat], range_ids: 500, noise: true}
            commit_size: 5GB
            exchange_above: 8GB
            task_memory: 1.5GB
            spark: {spark.executor.memory: 8g}
            verify: touched
            writers: conditional
            other_managers: known
            allow_compacting_writers: true
            check: {enabled: false, byte_budget: 1TB, join_budget: 1GB, keys_budget: 2GB, keys: [id],
                    reader: duckdb, evidence: rows, expectations_on: changed, results_context: gx}
            sweep: {mode: delete, older_than: 36h, max_share: 0.1, purge_after: 90d, list_every: 28d,
              outside: true}
            expectations: [{type: expect_table_row_count_to_equal, kwargs: {value: 3}}]
            expire: {enabled: true, older_than: 90m, retain_last: 12}
            audit: {hold: true, files: 7d, sample: 0.01, byte_budget: 1TB}
            on: {verified: [], unchanged: [], skipped: [], refused: [a], conflicted: [b, c], hold: [d],
                 mismatch: [{webhook: 'https://h/x'}], failed: [{notifier: a.b.C, kwargs: {to: x}}],
                 late: [{webhook: '${URL}'}]}
    """
    effective = policy(text).effective("a")
    assert effective.settings.operations == (Operation.OPTIMIZE, Operation.UPGRADE)
    assert str(effective.settings.window) == "22:30-06:00 Europe/Berlin"
    assert str(effective.condition(Operation.OPTIMIZE)) == "any of (small_files > 20, deleted_ratio > 5%)"
    assert str(effective.settings.when).endswith("; upgrade: level0_age_ms >= 2h")
    assert effective.condition(Operation.PERSIST_DELETES) is None
    assert effective.settings.task_memory == 1536 * MB
    assert effective.settings.sweep == Sweep(
        mode="delete", older_than="36h", max_share=0.1, purge_after="90d", list_every="28d", outside=True
    )
    assert (effective.settings.sweep.older_than, effective.settings.sweep.purge_after) == (36 * HOUR, 90 * 24 * HOUR)
    assert (effective.settings.expire.older_than, effective.settings.expire.retain_last) == (90 * 60_000, 12)
    assert effective.settings.clustering == Clustering(("day", "place.lat"), Curve.HILBERT, 500, noise=True)
    assert {origin.layer for origin in effective.origins.values()} == {"table a"}


def test_operations_are_the_policys_or_suit_the_format() -> None:
    loaded = policy("tables: [{name: a, table: 'paimon:/a', operations: [optimize, upgrade]}]")
    assert loaded.effective("a").operations == (Operation.OPTIMIZE, Operation.UPGRADE)
    assert loaded.effective("paimon:/b").operations == (Operation.UPGRADE, Operation.OPTIMIZE)
    assert loaded.effective("delta:/b").operations == (Operation.OPTIMIZE,)
    assert loaded.effective("iceberg:prod/b").operations == (Operation.PERSIST_DELETES, Operation.OPTIMIZE)


def test_settings_cannot_be_changed_after_loading() -> None:
    settings = policy("").effective("delta:/x").settings
    with pytest.raises(ValueError, match="frozen"):
        settings.full = True  # type: ignore[misc]


class TestAddresses:
    def one(self, table: str, environ: dict[str, str] | None = None) -> str:
        loaded = policy(f"tables: [{{name: t, table: {json.dumps(table)}}}]", environ)
        return str(loaded.tables[0].address)

    def test_relative_paths_start_at_the_policy_file(self) -> None:
        assert self.one("paimon:../warehouse/shop.db/a/") == "paimon:/etc/warehouse/shop.db/a"

    @pytest.mark.parametrize(
        "address", ["paimon:file:///w/a", "delta:s3://bucket/a", "iceberg:prod/shop.orders", "delta:/w/a b%20c"]
    )
    def test_complete_locations_stay_as_written(self, address: str) -> None:
        assert self.one(address) == address

    def test_environment_is_filled_in(self) -> None:
        assert self.one("paimon:${HOME_OF}/a", {"HOME_OF": "/w"}) == "paimon:/w/a"
        assert self.one("paimon:${HOME_OF:-/d}/a", {"HOME_OF": "/w"}) == "paimon:/w/a"
        assert self.one("paimon:${HOME_OF:-/d}/a") == "paimon:/d/a"
        assert self.one("paimon:${HOME_OF:-/d}/a", {"HOME_OF": ""}) == "paimon:/d/a"
        assert self.one("paimon:${A}/a", {"A": "/${B}"}) == "paimon:/${B}/a"

    def test_a_variable_without_value_is_refused_with_its_line(self) -> None:
        text = 'tables:\n  - name: t\n    table: "paimon:${NOPE}/a"\n'
        assert refusal(text) == (
            "/etc/care/tables.yaml:4: tables[0].table: expected environment variable NOPE to be set "
            "or given a default, found neither"
        )
        assert "expected ${NAME} or ${NAME:-default}" in refusal(text.replace("${NOPE}", "${NO-PE}"))

    def test_a_listed_address_is_that_table(self) -> None:
        loaded = policy(LAYERED)
        for spelling in ("paimon:/w/shop.db/orders", "paimon:file:///w/shop.db/orders/", "paimon:/w/./shop.db/orders"):
            assert loaded.effective(spelling) == loaded.effective("shop.orders")

    @pytest.mark.parametrize(
        ("address", "size"),
        [
            ("paimon:/w/shop.db/orders", 3 * MB),
            ("delta:s3://bucket/shop/orders", 3 * MB),
            ("iceberg:prod/shop.orders", 3 * MB),
            ("delta:/lake/ledger", 2 * MB),
            ("delta:/ledger", 2 * MB),
            ("delta:/lake/other", MB),
        ],
    )
    def test_an_unlisted_address_is_governed_by_its_last_components(self, address: str, size: int) -> None:
        text = """\
            defaults: {target_size: 1MB}
            patterns:
              - {match: ledger, target_size: 2MB}
              - {match: shop.orders, target_size: 3MB}
        """
        effective = policy(text).effective(address)
        assert effective.settings.target_size == size
        assert effective.address.name == address

    def test_names_and_addresses_carry_the_reports_name(self) -> None:
        assert policy(LAYERED).effective("lab.orders").address == Address("delta", "/lake/orders", "lab.orders")

    def test_an_unknown_name_is_answered_with_the_nearest(self) -> None:
        with pytest.raises(AddressError, match=r"^shop\.order: .* did you mean shop\.orders\?$"):
            policy(LAYERED).effective("shop.order")
        with pytest.raises(AddressError, match="a location after paimon:"):
            policy(LAYERED).effective("paimon:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("defaults:\n  verfy: full", ":3: defaults.verfy: unknown key; did you mean verify?"),
        ("defalts: {}", ":2: defalts: unknown key; did you mean defaults?"),
        (
            "defaults:\n  check:\n    byte_budgt: 1GB",
            ":4: defaults.check.byte_budgt: unknown key; did you mean byte_budget? "
            "(known: byte_budget, enabled, evidence, expectations_on, join_budget, keys, keys_budget, "
            "reader, results_context)",
        ),
        (
            "budget:\n  times: 2h",
            ":3: budget.times: unknown key; did you mean time? (known: bytes, longest_wait, task_time, time)",
        ),
        (
            "patterns:\n  - match: a\n    budget: {bytes: 2}",
            ":4: patterns[0].budget.bytes: expected a size with its unit",
        ),
        (
            "tables:\n  - name: a\n    table: delta:/a\n    tables_per_session: 2",
            ":5: tables[0].tables_per_session: unknown key",
        ),
        (
            "patterns:\n  - match: a*\n    verify: fll",
            ":4: patterns[0].verify: expected 'full' or 'touched', found 'fll'; did you mean full?",
        ),
        (
            "defaults:\n  operations: [upgrade, optimise]",
            ":3: defaults.operations[1]: expected 'upgrade', 'persist-deletes', 'optimize' or 'audit', "
            "found 'optimise'; did you mean optimize?",
        ),
        ("defaults: {operations: upgrade}", ":2: defaults.operations: expected a list, found 'upgrade'"),
        ("defaults: {operations: []}", ":2: defaults.operations: expected at least one, found an empty list"),
        (
            "defaults: {task_memory: 2}",
            ":2: defaults.task_memory: expected a size with its unit, such as 512MB or 2GB, found 2",
        ),
        ("defaults: {full: 'yes'}", ":2: defaults.full: expected true or false, found 'yes'"),
        ("defaults: {pause: true}", ":2: defaults.pause: expected text, found true"),
        ("defaults: {pause: ''}", ":2: defaults.pause: expected text, found ''"),
        ("defaults: {check: false}", ":2: defaults.check: expected a mapping of settings, found false"),
        ("defaults: {tables_per_session: 0}", ":2: defaults.tables_per_session: expected greater than or equal"),
        (
            "defaults: {window: 02:00-06:00 Europe/Berln}",
            ":2: defaults.window: expected an IANA time zone after the times, such as Europe/Berlin, "
            "found '02:00-06:00 Europe/Berln'",
        ),
        ("defaults: {window: 22:00-24:00 UTC}", ":2: defaults.window: expected times from 00:00 to 23:59"),
        ("defaults: {window: 02:00-06:00}", ":2: defaults.window: expected a window with its time zone"),
        ("defaults: {window: 02:00-02:00 UTC}", ":2: defaults.window: expected a window that ends at another"),
        (
            "defaults: {max_deleted_ratio: 2}",
            ":2: defaults.max_deleted_ratio: expected less than or equal to 1, found 2",
        ),
        ("defaults: {max_deleted_ratio: half}", ":2: defaults.max_deleted_ratio: expected a number, found 'half'"),
        (
            "defaults:\n  clustering: zorder",
            ":3: defaults.clustering: expected a mapping with one of zorder, hilbert, columns with a list of columns, "
            "found 'zorder'",
        ),
        (
            "defaults:\n  clustering: {}",
            ":3: defaults.clustering: expected one of zorder, hilbert, columns with a list of columns, "
            "found an empty mapping",
        ),
        (
            "defaults:\n  clustering: {zorder: [a], hilbert: [b]}",
            ":3: defaults.clustering: expected one of zorder, hilbert, columns with a list of columns, "
            "found zorder, hilbert",
        ),
        (
            "defaults:\n  clustering: {zorder: [a], ranges: 3}",
            ":3: defaults.clustering: expected one of zorder, hilbert, columns with a list of columns, "
            "and optionally range_ids and noise, found zorder, ranges",
        ),
        (
            "defaults:\n  clustering: {columns: a}",
            ":3: defaults.clustering: expected columns with a list of columns, found 'a'",
        ),
        (
            "defaults:\n  clustering: {zorder: [a, 1]}",
            ":3: defaults.clustering: expected zorder with a list of columns, found ['a', 1]",
        ),
        (
            "defaults:\n  clustering: {zorder: [a, a]}",
            ":3: defaults.clustering: expected different columns, at least one, found ['a', 'a']",
        ),
        (
            "defaults:\n  clustering: {zorder: []}",
            ":3: defaults.clustering: expected different columns, at least one, found []",
        ),
        (
            "defaults:\n  clustering: {zorder: [a], range_ids: 1}",
            ":3: defaults.clustering: expected range_ids as a whole number, at least 2, found 1",
        ),
        (
            "defaults:\n  clustering: {zorder: [a], noise: 1}",
            ":3: defaults.clustering: expected noise as true or false, found 1",
        ),
        ("defaults:\n  sweep:\n    older_than: 23h", ":4: defaults.sweep.older_than: expected at least 24h, found 23h"),
        ("defaults:\n  sweep: {purge_after: 90m}", ":3: defaults.sweep.purge_after: expected at least 24h, found 90m"),
        (
            "defaults:\n  sweep: {older_than: 7}",
            ":3: defaults.sweep.older_than: expected a duration with its unit, such as 7d, 36h or 90m, found 7",
        ),
        ("defaults:\n  sweep: {mode: quarantaine}", "found 'quarantaine'; did you mean quarantine?"),
        ("defaults:\n  sweep: {max_share: 0}", ":3: defaults.sweep.max_share: expected greater than 0, found 0"),
        (
            "defaults:\n  sweep: {oldr_than: 7d}",
            ":3: defaults.sweep.oldr_than: unknown key; did you mean older_than? "
            "(known: list_every, max_share, mode, older_than, outside, purge_after)",
        ),
        (
            "defaults:\n  expire: {retain: 3}",
            ":3: defaults.expire.retain: unknown key; did you mean retain_last? "
            "(known: enabled, older_than, retain_last)",
        ),
        (
            "defaults:\n  expire: {retain_last: 0}",
            ":3: defaults.expire.retain_last: expected greater than or equal to 1",
        ),
        ("tables: [{table: 'delta:/a'}]", ":2: tables[0].name: expected this key, found none"),
        ("tables: {a: b}", ":2: tables: expected a list, found a mapping"),
        (
            "tables: [{name: a, table: 'detla:/a'}]",
            ":2: tables[0].table: expected paimon:URI, delta:URI or iceberg:CATALOG/NAMESPACE.TABLE, "
            "found 'detla:/a'; did you mean delta:?",
        ),
        ("tables: [{name: 'delta:a', table: 'delta:/a'}]", ":2: tables[0].name: expected a name, which"),
        ('tables: [{name: "a\\nb", table: "delta:/a"}]', ":2: tables[0].name: expected one line of text"),
        (
            "tables: [{name: a, table: 'delta:/a'}, {name: a, table: 'delta:/b'}]",
            ":2: name 'a': expected once, found before on line 2",
        ),
        (
            "tables:\n- {name: a, table: 'delta:/a'}\n- {name: b, table: 'delta:file:///a/'}",
            ":4: table delta:file:///a: expected once, found before on line 3",
        ),
        ("defaults: {full: true, full: false}", ":2: defaults.full: expected once, found before on line 2"),
        ("defaults:\n  ? [a]\n  : b", ":3: expected a plain key, found a list or mapping as key"),
        ("defaults: &d {full: true}\ntables:\n  - <<: *d", ":4: tables[0].<<: expected a value written here"),
        ("defaults: &d [*d]", ":2: defaults[0]: expected a value written here, found an alias"),
        ("defaults: [", ": expected YAML, found "),
        ("defaults: !thing 3", ":2: expected YAML, found could not determine a constructor"),
        ("defaults: {pause: 2026-13-45}", ":2: expected a value, found '2026-13-45'"),
        ("a: \x01", ": expected YAML, found "),
    ],
)
def test_refusals_state_file_line_key_expected_and_found(text: str, message: str) -> None:
    found = refusal(text)
    assert found.startswith("/etc/care/tables.yaml:")
    assert message in found


def test_all_faults_are_reported_at_once_in_file_order() -> None:
    lines = refusal("tables:\n  - {name: 1, table: delta:/a}\ndefaults:\n  full: 1\n  chek: {}\n").splitlines()
    assert [line.split(": ")[0].rpartition(":")[2] for line in lines] == ["3", "5", "6"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 2", "t.yaml:1: version: expected 1, found 2"),
        ("", "t.yaml:1: version: expected this key, found none"),
        ("hello", "t.yaml:1: expected a mapping with version and tables, found 'hello'"),
    ],
)
def test_the_version_comes_first(text: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load("t.yaml", text=text)
    assert str(caught.value) == message


def test_commented_out_blocks_are_empty_ones() -> None:
    assert policy("defaults:\npatterns:\ntables:\n").tables == ()


def test_a_missing_or_unreadable_file_is_a_policy_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"tables\.yaml:1: expected a policy file, found no such file$"):
        load(tmp_path / "tables.yaml")
    (tmp_path / "tables.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(PolicyError, match="UTF-8"):
        load(tmp_path / "tables.yaml")


class TestSizes:
    @given(st.integers(min_value=1, max_value=1 << 60))
    def test_what_is_shown_reads_back_exactly(self, size: int) -> None:
        assert parse_size(format_size(size)) == size

    @pytest.mark.parametrize(
        ("text", "size"),
        [
            ("512MB", 512 * MB),
            ("512 MiB", 512 * MB),
            ("1.5gb", 1536 * MB),
            ("1B", 1),
            ("0.1KB", 102),
            ("2tib", 2048 * GB),
        ],
    )
    def test_units_are_powers_of_1024(self, text: str, size: int) -> None:
        assert parse_size(text) == size

    @pytest.mark.parametrize(
        "text", ["12", 12, "MB", "-1MB", "0MB", "0.1B", "1iB", "1 M", "1,5GB", " 1MB", "1PB", None]
    )
    def test_anything_else_is_refused(self, text: object) -> None:
        with pytest.raises(ValueError, match="a size with its unit"):
            parse_size(text)


class TestDurations:
    @given(st.integers(min_value=1, max_value=1 << 30))
    def test_what_is_shown_reads_back_exactly(self, minutes: int) -> None:
        assert parse_duration(format_duration(minutes * 60_000)) == minutes * 60_000

    @pytest.mark.parametrize(
        ("text", "duration"),
        [("7d", 168 * HOUR), ("36h", 36 * HOUR), ("90 m", HOUR * 3 // 2), ("1m", 60_000), ("007d", 168 * HOUR)],
    )
    def test_days_hours_and_minutes(self, text: str, duration: int) -> None:
        assert parse_duration(text) == duration

    @pytest.mark.parametrize("text", ["7", 7, "d", "-1d", "0h", "1.5d", "7D", "1w", "30s", "1d12h", " 7d", "P7D", None])
    def test_anything_else_is_refused(self, text: object) -> None:
        with pytest.raises(ValueError, match="a duration with its unit, such as 7d, 36h or 90m"):
            parse_duration(text)

    def test_the_longest_unit_that_fits_is_shown(self) -> None:
        shown = [format_duration(hours * HOUR) for hours in (24, 36, 168)]
        assert shown == ["1d", "36h", "7d"]


class TestSweep:
    def test_nothing_is_moved_unless_the_policy_sets_it(self) -> None:
        settings = policy("").effective("paimon:/a").settings
        assert (settings.sweep.mode, settings.expire.enabled) == ("dry-run", False)

    def test_layers_merge_field_by_field(self) -> None:
        text = """\
            defaults:
              sweep: {mode: quarantine, older_than: 14d}
              expire: {enabled: true, retain_last: 5}
            patterns: [{match: "a*", sweep: {older_than: 3d}, expire: {retain_last: null}}]
        """
        settings = policy(text).effective("paimon:/abc").settings
        assert (settings.sweep.mode, settings.sweep.older_than) == ("quarantine", 72 * HOUR)
        assert (settings.expire.enabled, settings.expire.retain_last) == (True, None)

    def test_a_delta_table_keeps_files_for_a_week_whatever_the_layer_that_states_less(self) -> None:
        text = "defaults: {verify: full}\npatterns:\n- match: 'l*'\n  sweep:\n    older_than: 3d\n"
        assert policy(text).effective("paimon:/lake").settings.sweep.older_than == 72 * HOUR
        message = r"/etc/care/tables.yaml:6: sweep.older_than: expected at least 7d for delta:/lake, .* found 3d"
        with pytest.raises(PolicyError, match=message):
            policy(text).effective("delta:/lake")
        listed = refusal(text + "tables: [{name: lake, table: 'delta:/x'}]")
        assert "yaml:6: sweep.older_than: expected at least 7d for lake, a table of delta, found 3d" in listed

    def test_floors_are_those_that_the_formats_have(self) -> None:
        assert {name: floor_ms(name) for name in ("paimon", "delta", "iceberg")} == {
            "paimon": DAY_MS,
            "delta": 7 * DAY_MS,
            "iceberg": DAY_MS,
        }

    def test_the_delta_table_may_state_more_than_a_pattern_for_all(self) -> None:
        text = "defaults: {sweep: {older_than: 3d}}\npatterns: [{match: 'lake*', sweep: {older_than: 7d}}]\n"
        loaded = policy(text + "tables: [{name: lake.a, table: 'delta:/x'}, {name: b, table: 'paimon:/y'}]")
        assert [loaded.effective(name).settings.sweep.older_than for name in ("lake.a", "b")] == [168 * HOUR, 72 * HOUR]

    def test_explain_states_durations_and_counts_as_they_are_written(self) -> None:
        text = "defaults:\n  sweep: {older_than: 36h}\n  expire: {older_than: 90m, retain_last: 1024}"
        lines = [" ".join(line.split()) for line in explain_text(policy(text).effective("paimon:/x")).splitlines()]
        assert "sweep.older_than 36h /etc/care/tables.yaml:3 defaults" in lines
        assert "expire.older_than 90m /etc/care/tables.yaml:4 defaults" in lines
        assert "expire.retain_last 1024 /etc/care/tables.yaml:4 defaults" in lines


class TestWindows:
    @pytest.mark.parametrize(
        ("hour", "minute", "inside"), [(0, 59, False), (1, 0, True), (4, 59, True), (5, 0, False), (13, 0, False)]
    )
    def test_start_is_inside_and_end_is_not(self, hour: int, minute: int, inside: bool) -> None:
        window = parse_window("02:00-06:00 Europe/Berlin")
        assert window.contains(datetime(2026, 1, 10, hour, minute, tzinfo=UTC)) is inside

    @pytest.mark.parametrize(
        ("hour", "inside"), [(21, False), (22, True), (23, True), (0, True), (5, True), (6, False)]
    )
    def test_a_window_may_span_midnight(self, hour: int, inside: bool) -> None:
        assert parse_window("22:00-06:00 UTC").contains(datetime(2026, 1, 10, hour, tzinfo=UTC)) is inside

    def test_summer_time_moves_the_window(self) -> None:
        window = parse_window("02:00-06:00 Europe/Berlin")
        assert window.contains(datetime(2026, 7, 1, 0, 30, tzinfo=UTC))
        assert not window.contains(datetime(2026, 1, 1, 0, 30, tzinfo=UTC))

    def test_a_time_without_zone_is_no_answer(self) -> None:
        with pytest.raises(ValueError, match="expected a time with a zone"):
            parse_window("02:00-06:00 UTC").contains(datetime(2026, 1, 1))

    @pytest.mark.parametrize("zone", ["Europe", "../etc/passwd", "/etc/localtime", "Nowhere/At_All"])
    def test_odd_zones_are_refused(self, zone: str) -> None:
        with pytest.raises(ValueError, match="an IANA time zone"):
            parse_window(f"02:00-06:00 {zone}")


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("{zorder: [a, b]}", Clustering(("a", "b"), Curve.Z)),
        ("{hilbert: [a, b]}", Clustering(("a", "b"), Curve.HILBERT)),
        ("{columns: [a, b]}", Clustering(("a", "b"), Curve.HILBERT)),
        ("{zorder: [s.leaf], range_ids: 64, noise: true}", Clustering(("s.leaf",), Curve.Z, 64, noise=True)),
    ],
)
def test_clustering_names_columns_and_a_curve_or_leaves_the_curve_open(block: str, expected: Clustering) -> None:
    assert policy(f"defaults: {{clustering: {block}}}").effective("delta:/x").settings.clustering == expected


def test_a_higher_layer_replaces_clustering_as_a_whole() -> None:
    text = """\
        defaults: {clustering: {zorder: [a, b], range_ids: 64}}
        tables:
          - {name: a, table: "delta:/a", clustering: {hilbert: [c]}}
          - {name: b, table: "delta:/b", clustering: null}
    """
    loaded = policy(text)
    assert loaded.effective("a").settings.clustering == Clustering(("c",), Curve.HILBERT)
    assert loaded.effective("b").settings.clustering is None


class TestOverrides:
    SETTINGS = Settings(where="day = 1", full=True, clustering=Clustering(("a",), Curve.HILBERT, 64, noise=True))

    def test_what_is_not_stated_stays(self) -> None:
        assert Overrides().values(self.SETTINGS) == {}

    def test_what_is_stated_wins(self) -> None:
        said = Overrides(
            where="day = 2",
            zorder="b, s.leaf",
            target_size="1MB",
            min_file_size="2MB",
            max_deleted_ratio=0.0,
            allow_compacting_writers=True,
            verify=VerifyLevel.TOUCHED,
            task_memory="1GB",
            writers=Writers.CONDITIONAL,
        )
        assert said.values(self.SETTINGS) == {
            "where": "day = 2",
            "target_size": MB,
            "min_file_size": 2 * MB,
            "max_deleted_ratio": 0.0,
            "clustering": Clustering(("b", "s.leaf"), Curve.Z, 64, noise=True),
            "verify": VerifyLevel.TOUCHED,
            "allow_compacting_writers": True,
            "task_memory": GB,
            "writers": Writers.CONDITIONAL,
        }
        assert Overrides(hilbert="b").values(Settings()) == {"clustering": Clustering(("b",), Curve.HILBERT)}

    @pytest.mark.parametrize(
        ("said", "message"),
        [
            (
                Overrides(zorder="a", hilbert="b"),
                "--zorder and --hilbert: expected one of the two, as files are laid along one curve, found 'a' and 'b'",
            ),
            (Overrides(zorder="a,,b"), "--zorder: expected different columns, at least one, found 'a,,b'"),
            (Overrides(hilbert="a, a"), "--hilbert: expected different columns, at least one, found 'a, a'"),
            (Overrides(zorder=""), "--zorder: expected different columns, at least one, found ''"),
            (
                Overrides(target_size="3"),
                "--target-size: expected a size with its unit, such as 512MB or 2GB, found '3'",
            ),
            (
                Overrides(min_file_size="0B"),
                "--min-file-size: expected a size with its unit, such as 512MB or 2GB, found '0B'",
            ),
            (Overrides(max_deleted_ratio=1.5), "--max-deleted-ratio: expected a share from 0 to 1, found 1.5"),
        ],
    )
    def test_a_slip_names_its_option(self, said: Overrides, message: str) -> None:
        with pytest.raises(UsageError) as caught:
            said.values(Settings())
        assert str(caught.value) == message

    def test_columns_want_an_operation_that_clusters(self) -> None:
        Overrides(zorder="a").require_use([Operation.PERSIST_DELETES, Operation.OPTIMIZE])
        Overrides().require_use([Operation.UPGRADE])
        with pytest.raises(UsageError, match="--hilbert: expected operation optimize, found upgrade"):
            Overrides(hilbert="a").require_use([Operation.UPGRADE])


class TestGroups:
    def of(self, tables: int) -> PolicyFile:
        entries = "".join(f"  - {{name: t{i}, table: 'delta:/t{i}'}}\n" for i in range(tables))
        return policy("defaults: {tables_per_session: 4}\ntables:\n" + entries)

    @given(st.integers(0, 30), st.integers(1, 9))
    def test_every_table_once_in_order_in_as_few_even_groups_as_fit(self, tables: int, size: int) -> None:
        found = groups(self.of(tables), size)
        assert [name for group in found for name in group] == [f"t{i}" for i in range(tables)]
        assert len(found) == -(-tables // size)
        sizes = [len(group) for group in found]
        assert not sizes or (max(sizes) <= size and max(sizes) - min(sizes) <= 1)

    def test_formats_share_a_session_where_all_of_their_tables_fit(self) -> None:
        text = """\
            defaults: {tables_per_session: 2}
            tables:
              - {name: d1, table: "delta:/1"}
              - {name: p1, table: "paimon:/1"}
              - {name: d2, table: "delta:/2"}
              - {name: p2, table: "paimon:/2"}
              - {name: d3, table: "delta:/3"}
        """
        assert groups(policy(text)) == [("d1",), ("d2", "d3"), ("p1", "p2")]
        assert groups(policy(text), 4) == [("d1", "d2", "d3"), ("p1", "p2")]
        assert groups(policy(text), 5) == [("d1", "d2", "d3", "p1", "p2")]

    def test_the_file_states_how_many_share_a_session(self) -> None:
        assert [len(group) for group in groups(self.of(6))] == [3, 3]


def test_explain_prints_every_value_with_its_origin() -> None:
    assert explain_text(policy(LAYERED).effective("shop.orders")) == dedent(
        """\
        shop.orders  paimon:/w/shop.db/orders

        setting                   value     from                      layer
        preset                    balanced                            built-in
        operations                -                                   built-in
        pause                     -                                   built-in
        window                    -                                   built-in
        when                      -                                   built-in
        where                     -                                   built-in
        full                      false                               built-in
        respec                    false                               built-in
        target_size               64MB      /etc/care/tables.yaml:8   pattern shop.*
        min_file_size             -                                   built-in
        max_deleted_ratio         -                                   built-in
        clustering                -                                   built-in
        commit_size               10GB                                built-in
        task_memory               3GB       /etc/care/tables.yaml:12  pattern shop.ord*
        exchange_above            -                                   built-in
        spark                     -                                   built-in
        verify                    touched   /etc/care/tables.yaml:3   defaults
        allow_compacting_writers  false                               built-in
        other_managers            unknown                             built-in
        writers                   unknown                             built-in
        check.enabled             false     /etc/care/tables.yaml:19  table shop.orders
        check.byte_budget         2GB       /etc/care/tables.yaml:10  pattern shop.*
        check.join_budget         -                                   built-in
        check.keys_budget         256MB                               built-in
        check.keys                -                                   built-in
        check.reader              -                                   built-in
        check.evidence            keys                                built-in
        check.results_context     -                                   built-in
        check.expectations_on     all                                 built-in
        expectations              -                                   built-in
        sweep.mode                dry-run                             built-in
        sweep.older_than          7d                                  built-in
        sweep.max_share           0.5                                 built-in
        sweep.purge_after         30d                                 built-in
        sweep.list_every          -                                   built-in
        sweep.outside             false                               built-in
        expire.enabled            false                               built-in
        expire.older_than         -                                   built-in
        expire.retain_last        -                                   built-in
        audit.hold                false                               built-in
        audit.files               -                                   built-in
        audit.sample              -                                   built-in
        audit.byte_budget         50GB                                built-in
        on.verified               -                                   built-in
        on.unchanged              -                                   built-in
        on.skipped                -                                   built-in
        on.refused                -                                   built-in
        on.conflicted             -                                   built-in
        on.mismatch               -                                   built-in
        on.failed                 -                                   built-in
        on.hold                   -                                   built-in
        on.late                   -                                   built-in"""
    )


def test_explain_states_columns_curve_and_options() -> None:
    text = "defaults: {clustering: {zorder: [a, s.b], noise: true}}"
    line = next(line for line in explain_text(policy(text).effective("delta:/x")).splitlines() if "clustering" in line)
    assert " ".join(line.split()) == (
        "clustering z-order by a, s.b (1000 range ids, with noise) /etc/care/tables.yaml:2 defaults"
    )


def test_the_nightly_policy_states_where_the_samples_are() -> None:
    loaded = load(ROOT / "dags/tables.yaml", environ={})
    warehouse = f"{ROOT}/.work/warehouse"
    assert [(place.kind, place.location) for place in loaded.discoveries] == [
        ("paimon", f"{warehouse}/paimon"),
        ("delta", f"{warehouse}/delta/shop.db"),
        ("iceberg", "lake"),
    ]
    moved = load(ROOT / "dags/tables.yaml", environ={"NIGHTKEEP_WAREHOUSE": "/mnt/w"})
    assert moved.discoveries[0].location == "/mnt/w/paimon"


def test_the_editor_schema_is_current_and_agrees_with_the_loader() -> None:
    committed = json.loads((ROOT / "dags/tables.schema.json").read_text())
    assert committed == json_schema(), "make policy-reference"
    Draft202012Validator.check_schema(committed)
    validator = Draft202012Validator(committed)
    assert validator.is_valid(yaml.safe_load((ROOT / "dags/tables.yaml").read_text()))
    assert validator.is_valid({"version": 1, **yaml.safe_load(dedent(LAYERED))})
    for wrong in (
        {"verfy": "full"},
        {"task_memory": 2},
        {"check": {"enabled": "no"}},
        {"window": "2-6"},
        {"sweep": {"older_than": "1w"}},
    ):
        assert not validator.is_valid({"version": 1, "defaults": wrong})


@pytest.mark.parametrize(
    ("block", "fine"),
    [
        ({"zorder": ["a"]}, True),
        ({"columns": ["a", "b"], "range_ids": 2, "noise": True}, True),
        (None, True),
        ({}, False),
        ({"zorder": ["a"], "hilbert": ["a"]}, False),
        ({"zorder": []}, False),
        ({"zorder": ["a", "a"]}, False),
        ({"zorder": [""]}, False),
        ({"zorder": "a"}, False),
        ({"zorder": ["a"], "range_ids": 1}, False),
        ({"zorder": ["a"], "noise": 1}, False),
        ({"zorder": ["a"], "other": 1}, False),
    ],
)
def test_the_editor_schema_and_the_loader_agree_on_clustering(block: object, fine: bool) -> None:
    document = {"version": 1, "defaults": {"clustering": block}}
    assert policy_schema().is_valid(document) is fine
    if fine:
        load("t.yaml", text=json.dumps(document))
    else:
        with pytest.raises(PolicyError, match="clustering"):
            load("t.yaml", text=json.dumps(document))


def test_the_editor_schema_shows_the_real_defaults() -> None:
    blocks = json_schema()["$defs"]
    assert isinstance(blocks, dict)
    assert parse_size(blocks["Defaults"]["properties"]["task_memory"]["default"]) == Settings().task_memory
    assert parse_size(blocks["Check"]["properties"]["byte_budget"]["default"]) == Settings().check.byte_budget
    assert parse_duration(blocks["Sweep"]["properties"]["older_than"]["default"]) == Settings().sweep.older_than
    assert parse_duration(blocks["Sweep"]["properties"]["purge_after"]["default"]) == Settings().sweep.purge_after


@pytest.mark.slow
def test_importing_the_policy_imports_nothing_heavy() -> None:
    code = "import sys, nightkeep.policy; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "jobs")
    heavy = {"pyspark", "pyarrow", "pandas", "numpy", "polars", "great_expectations", "airflow", "jinja2", "rich"}
    assert not heavy & set(run.stdout.split())


def test_the_public_names_are_pinned() -> None:
    assert all(hasattr(nightkeep.policy, name) for name in nightkeep.policy.__all__)
    assert sorted(nightkeep.policy.__all__) == nightkeep.policy.__all__


def test_moves_between_partition_specs_are_for_iceberg() -> None:
    """A layer may be for tables of several formats; an entry of one table is not."""
    layers = (
        "defaults: {respec: true}\ntables:\n  - {name: a, table: 'delta:/a'}\n  - {name: b, table: 'iceberg:c/d.b'}"
    )
    assert policy(layers).effective("a").settings.respec and policy(layers).effective("b").settings.respec
    with pytest.raises(PolicyError, match="respec: expected a table of iceberg, which has partition specs, found a"):
        policy("tables:\n  - {name: a, table: 'delta:/a', respec: true}").effective("a")
