"""The check of real versions: Java's, ours, and ours after someone tampered with them."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.paimon.upgrade import upgrade
from tests.support.extended import some_extended

from nightkeep.checking import check as check_module
from nightkeep.checking import compared_sides, expectations, unit_fingerprints
from nightkeep.checking.check import check
from nightkeep.checking.diff import diff
from nightkeep.checking.unit_sample import sample
from nightkeep.errors import CorruptMetadata, RefusedTable, UsageError
from nightkeep.formats import open_table
from nightkeep.formats.paimon.spark import largest_run
from nightkeep.formats.paimon.spark.view import PaimonView
from nightkeep.model import Address, UnitKey, VerifyLevel, VersionIdentity
from nightkeep.model.check_values import CheckRequest, Evidence
from nightkeep.records.check_report import CheckReport, Difference
from nightkeep.records.document import CheckStatus
from nightkeep.spark.view import TableVersion, UnitState
from nightkeep.stages.verify import prove

SAMPLES = Path(__file__).parents[2] / "samples" / "paimon" / "shop.db"


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    return copied(tmp_path, "orders")


def copied(folder: Path, name: str) -> Path:
    return Path(shutil.copytree(SAMPLES / name, folder / "shop.db" / name))


def address(table: Path) -> Address:
    return Address("paimon", str(table), table.name)


def latest(table: Path) -> int:
    return max(int(path.name.removeprefix("snapshot-")) for path in table.glob("snapshot/snapshot-*"))


def failed(report: CheckReport) -> dict[str, set[str | None]]:
    """Units by the name of the expectation that fails in them."""
    names = {r.name for r in report.results if r.status is CheckStatus.FAILED}
    return {name: {r.unit for r in report.results if r.name == name} for name in names}


# ---- versions that are right ----


@pytest.mark.parametrize(
    ("name", "version"), some_extended([("orders", 4), ("customers", 4), ("positions", 4), ("stock", 2)], keep=2)
)
def test_javas_compactions_pass(spark: SparkSession, name: str, version: int) -> None:
    report = check(CheckRequest(address(SAMPLES / name), version), spark=spark)
    assert report.status is CheckStatus.PASSED, str(report)
    assert [result.name for result in report.results] == [e.description for e in expectations.EXPECTATIONS]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", some_extended(["orders", "customers", "positions", "stock", "events_input"], keep=2))
def test_our_upgrades_pass(spark: SparkSession, tmp_path: Path, name: str) -> None:
    table = copied(tmp_path, name)
    document = upgrade(table)
    report = check(CheckRequest(address(table), base_version=document.base_version), spark=spark)
    assert report.status is CheckStatus.PASSED, str(report)
    assert report.differences == ()
    assert "touched units compared" in report.coverage


def test_level_0_that_arrived_meanwhile_is_compared_with_the_parent(
    spark: SparkSession, paimon_java: PaimonJava, tmp_path: Path
) -> None:
    table = copied(tmp_path, "orders")
    planned = latest(table)
    handle = paimon_java.prepare_compact(table).handle
    assert handle is not None
    row = ["+U", "2026-11-01", 10_000, "C-1", "late", "1.00", None, "2026-12-01T00:00:00.000000"]
    paimon_java.write(table, [row], Writer(user="shop-writer", identifier=99))
    paimon_java.commit_prepared(handle)
    report = check(CheckRequest(address(table), base_version=planned), spark=spark)
    assert report.status is CheckStatus.PASSED, str(report)
    assert report.results[1].detail == "7 comparisons"


def test_the_report_prints_and_is_json(spark: SparkSession) -> None:
    report = check(CheckRequest(address(SAMPLES / "untouched"), 2), spark=spark)
    assert json.loads(json.dumps(report.to_json()))["status"] == "passed"
    assert str(report).startswith("passed: 2 of 2 touched units compared")


# ---- versions that are wrong ----


@pytest.mark.few(1)
@pytest.mark.parametrize("step", ["compare_rows", "expect"])
def test_what_cannot_be_explained_has_failed_all_the_same(
    spark: SparkSession, orders: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The fingerprints differ, so that the table is held, whatever happens to the rest."""

    def lost(*arguments: object, **named: object) -> None:
        raise Py4JNetworkError("An error occurred while trying to connect to the Java server")

    tampered(orders, lambda rows: rows.slice(1))
    monkeypatch.setattr(compared_sides, step, lost)
    monkeypatch.setattr(check_module, "gone_meanwhile", lost)
    report = check(CheckRequest(address(orders)), spark=spark)
    assert report.status is CheckStatus.FAILED, str(report)
    assert set(failed(report)) == {compared_sides.SAME_SUMS}
    assert report.reason is not None and "Spark's JVM has ended" in report.reason
    assert all("were not compared" in str(each.difference.note) for each in report.differences)


@pytest.mark.extended
def test_a_lost_vector_shows_the_rows_it_hid(spark: SparkSession, orders: Path) -> None:
    upgrade(orders)
    version = latest(orders)
    snapshot = orders / "snapshot" / f"snapshot-{version}"
    parent = json.loads((orders / "snapshot" / f"snapshot-{version - 1}").read_bytes())
    edited = json.loads(snapshot.read_bytes()) | {"indexManifest": parent["indexManifest"]}
    snapshot.write_text(json.dumps(edited))
    report = check(CheckRequest(address(orders)), spark=spark)
    assert report.status is CheckStatus.FAILED
    assert {"no row is extra", "no key has more than one row"} <= set(failed(report))
    assert "no row is missing" not in failed(report)
    assert all(d.difference.extra_keys and not d.difference.missing_keys for d in report.differences)


Tamper = Callable[[pa.Table], pa.Table]


def tampered(table: Path, *tampers: Tamper) -> list[UnitKey]:
    """Upgrade, then rewrite one new data file of a bucket in place for each of `tampers`; returns the buckets."""
    before = set(table.rglob("data-*.parquet"))
    upgrade(table)
    new = {path.parent: path for path in sorted(set(table.rglob("data-*.parquet")) - before)}
    units = []
    for bucket, tamper in zip(sorted(new), tampers, strict=False):
        rows = pq.read_table(new[bucket])
        changed = tamper(rows).cast(rows.schema)
        pq.write_table(changed, new[bucket], store_decimal_as_integer=True, store_schema=False)
        partition = bucket.relative_to(table).parent
        units.append(UnitKey("" if partition == Path() else str(partition), int(bucket.name[len("bucket-") :])))
    return units


def first(column: str, value: object) -> Tamper:
    """Put `value` into the first row."""

    def tamper(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index(column)
        kind = rows.schema.field(place).type
        is_first = pa.array([True] + [False] * (rows.num_rows - 1))
        changed = pc.if_else(is_first, pa.scalar(value, kind), rows.column(place))
        return rows.set_column(place, rows.schema.field(place), changed)

    return tamper


@pytest.mark.extended
def test_a_changed_value_is_found_with_both_rows(spark: SparkSession, orders: Path) -> None:
    (unit,) = tampered(orders, first("status", "stolen"))
    report = check(CheckRequest(address(orders), evidence=Evidence.ROWS), spark=spark)
    assert failed(report) == {
        "the first sum of row hashes is the same": {str(unit)},
        "the second sum of row hashes is the same": {str(unit)},
        "statistics cover every value": {str(unit)},
    }
    (found,) = report.differences
    missing, extra = found.difference.missing_rows[0], found.difference.extra_rows[0]
    assert (found.unit, found.difference.missing_count, found.difference.extra_count) == (unit, 1, 1)
    assert extra == {**missing, "status": "stolen"}
    assert missing["status"] in ("created", "paid", "packed", "shipped", "delivered")
    assert json.dumps(report.to_json())
    assert "stolen" in str(report)


@pytest.mark.extended
def test_rows_are_joined_where_asked_and_found_without_hashes(
    spark: SparkSession, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With hashes that are all the same, only the join of rows can tell."""
    monkeypatch.setattr(unit_fingerprints, "_hashed", lambda value, kind: [F.lit(0)])
    (unit,) = tampered(orders, first("status", "stolen"))
    blind = check(CheckRequest(address(orders)), spark=spark)
    names = ("no row is missing", "no row is extra")
    assert {r.status for r in blind.results if r.name in names} == {CheckStatus.NOT_APPLICABLE}
    report = check(CheckRequest(address(orders), join_budget=1 << 40), spark=spark)
    found = failed(report)
    assert {name: found[name] for name in names} == {name: {str(unit)} for name in names}
    assert found.keys() - {"statistics cover every value"} == set(names)
    assert re.search("rows of [0-9]+ units joined", report.coverage)
    assert [d.unit for d in report.differences] == [unit]


def test_tampering_fails_the_expectations_made_for_it(spark: SparkSession, orders: Path) -> None:
    lost, doubled, retracted, moved, null_for_text, number_for_null = map(
        str,
        tampered(
            orders,
            lambda rows: rows.slice(1),
            lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]),
            first("_VALUE_KIND", 3),
            first("_KEY_order_id", 1),
            first("note", ""),
            first("amount", None),
        ),
    )
    report = check(CheckRequest(address(orders)), spark=spark)
    assert report.status is CheckStatus.FAILED
    assert failed(report) == {
        "the first sum of row hashes is the same": {lost, doubled, null_for_text, number_for_null},
        "the second sum of row hashes is the same": {lost, doubled, null_for_text, number_for_null},
        "no row is missing": {lost},
        "no key has more than one row": {doubled},
        "metadata counts the rows that are there": {lost, doubled},
        "every row is live and stored under its own key": {retracted, moved},
        "statistics cover every value": {lost, null_for_text, number_for_null},
    }
    assert len(report.differences) == 4


@pytest.mark.extended
def test_keys_are_counted_within_a_budget_and_a_doubled_row_is_found_everywhere(
    spark: SparkSession, orders: Path
) -> None:
    units = tampered(orders, *[lambda rows: pa.concat_tables([rows, rows.slice(0, 1)])] * 3)
    few, every = (check(CheckRequest(address(orders), keys_budget=budget), spark=spark) for budget in (1, None))
    keys, rows, doubled = "no key has more than one row", "the number of rows is the same", {str(u) for u in units}
    assert failed(every)[keys] == failed(few)[rows] | failed(few).get(keys, set()) == doubled
    assert rows not in failed(every) and len(units) > 1
    counted = re.search("keys counted in 1 of ([0-9]+) units", few.coverage)
    assert counted is not None and "keys counted" not in every.coverage
    details = {r.name: r.detail for r in few.results if r.status is CheckStatus.PASSED}
    assert keys not in details or details[keys] == "1 comparisons"


@pytest.mark.extended
def test_a_key_that_a_kept_file_doubles_is_found_in_every_unit(
    spark: SparkSession, paimon_java: PaimonJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers show such rows of the version before as well, so that nothing else differs."""
    table = tmp_path / "t"
    options = {"bucket": "2", "write-only": "true", "deletion-vectors.enabled": "true"}
    paimon_java.create(table, Layout([("key", "INT NOT NULL"), ("text", "STRING")], ["key"], [], options))
    paimon_java.write(table, [("+I", key, f"first {key}") for key in range(4000)])
    paimon_java.compact(table, Compaction(full=True))
    paimon_java.write(table, [("+U", key, "second") for key in range(50, 4000, 200)])
    monkeypatch.setattr(largest_run, "FEW_ROWS", 0)
    kept = {file.name for file in paimon_java.files(table) if file.level > 0}
    document = upgrade(table)
    assert len(kept) == 2 and kept < {file.name for file in paimon_java.files(table)}
    hidden = {name: held["positions"] for each in paimon_java.vectors(table) for name, held in each.files.items()}
    for name in kept:
        (path,) = table.rglob(name)
        rows = pq.read_table(path)
        at = next(n for n in range(1, rows.num_rows) if not {n, n + 1} & set(hidden.get(name, ())))
        doubled = rows.take([*range(at + 1), at, *range(at + 2, rows.num_rows)])
        pq.write_table(doubled, path, store_decimal_as_integer=True, store_schema=False)
    few, every = (
        check(CheckRequest(address(table), base_version=document.base_version, keys_budget=budget), spark=spark)
        for budget in (1, None)
    )
    assert failed(every) == failed(few) == {"no key has more than one row": {"bucket-0", "bucket-1"}}
    assert "keys counted in 1 of 2 units" in few.coverage
    opened = open_table(address(table))
    base, candidate = (
        {unit.key: unit for unit in opened.units(opened.snapshot(number))}
        for number in (document.base_version, latest(table))
    )
    for level in VerifyLevel:
        proofs = [prove(opened.gate, base[key], unit, level=level) for key, unit in candidate.items()]
        assert len(proofs) == 2 and not any(proof.proven for proof in proofs)


@pytest.mark.extended
def test_zeros_of_two_signs_differ(spark: SparkSession, tmp_path: Path) -> None:
    table = copied(tmp_path, "positions")
    signs: list[str] = []

    def tamper(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index("latitude")
        values = rows.column(place).combine_chunks().to_pylist()
        index = values.index(0.0)
        signs.append(str(values[index]))
        values[index] = -values[index]
        return rows.set_column(place, rows.schema.field(place), pa.array(values))

    tampered(table, tamper)
    report = check(CheckRequest(address(table), evidence=Evidence.ROWS), spark=spark)
    (found,) = report.differences
    assert found.difference.missing_rows[0]["latitude"] == signs[0]
    assert {found.difference.missing_rows[0]["latitude"], found.difference.extra_rows[0]["latitude"]} == {"0.0", "-0.0"}


# ---- versions that cannot be checked ----


def test_an_expired_base_skips_the_check(spark: SparkSession, orders: Path) -> None:
    (orders / "snapshot" / "snapshot-2").unlink()
    report = check(CheckRequest(address(orders), version=4, base_version=2), spark=spark)
    assert (report.status, report.reason) == (
        CheckStatus.SKIPPED,
        "version 2, to compare with, does not exist any more",
    )


def test_a_format_that_compares_with_parents_needs_no_older_version(
    spark: SparkSession, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (orders / "snapshot" / "snapshot-2").unlink()
    request = CheckRequest(address(orders), version=4, base_version=2)
    monkeypatch.setattr(PaimonView, "compares_with_parent", True)
    report = check(request, spark=spark)
    assert (report.status, report.reason) == (CheckStatus.PASSED, None)
    (orders / "snapshot" / "snapshot-3").unlink()
    report = check(request, spark=spark)
    assert report.reason == "version 3, to compare with, does not exist any more"


def test_an_expired_version_skips_the_check(spark: SparkSession, orders: Path) -> None:
    report = check(CheckRequest(address(orders), version=40), spark=spark)
    assert (report.status, report.reason) == (CheckStatus.SKIPPED, "version 40 does not exist any more")


def test_a_version_that_may_change_rows_skips_the_check(spark: SparkSession, orders: Path) -> None:
    report = check(CheckRequest(address(orders), version=5), spark=spark)
    assert report.status is CheckStatus.SKIPPED
    assert "its commit is of kind APPEND" in (report.reason or "")


def test_a_version_of_someone_else_is_a_conflict(spark: SparkSession, orders: Path) -> None:
    report = check(CheckRequest(address(orders), version=4, commit_user="us"), spark=spark)
    assert report.conflicted
    assert (report.status, report.reason) == (
        CheckStatus.SKIPPED,
        "version 4: expected the commit of us, found shop-compactor",
    )
    assert not check(CheckRequest(address(orders), version=99), spark=spark).conflicted


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (CorruptMetadata("manifest m", "a count", "none"), "manifest m: expected a count, found none"),
        (TypeError("unsupported operand\n\tat org.apache.spark"), "TypeError: unsupported operand"),
        (RecursionError("too deep"), "RecursionError: too deep"),
        (MemoryError(), "MemoryError"),
    ],
)
@pytest.mark.parametrize("at", ["version", "rows", "misstated"])
def test_whatever_a_check_meets_is_errored_and_no_judgement(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, at: str, broken: Exception, told: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise broken

    monkeypatch.setattr(PaimonView, at, fail)
    report = check(CheckRequest(address(SAMPLES / "untouched"), 2), spark=spark)
    assert (report.status, report.results, report.differences) == (CheckStatus.ERRORED, (), ())
    assert report.reason is not None and report.reason.startswith(told) and "\n" not in report.reason


@pytest.mark.parametrize(
    ("column", "kind"), [("at", "TIMESTAMP(9) NOT NULL"), ("at", "TIMESTAMP(7) WITH LOCAL TIME ZONE NOT NULL")]
)
def test_a_key_that_spark_cannot_distinguish_skips_the_check(
    spark: SparkSession, paimon_java: PaimonJava, tmp_path: Path, column: str, kind: str
) -> None:
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    paimon_java.create(tmp_path / "t", Layout([(column, kind)], [column], options=options))
    report = check(CheckRequest(address(tmp_path / "t"), 1), spark=spark)
    assert report.status is CheckStatus.SKIPPED
    assert "Spark has no nanoseconds" in (report.reason or "")


def test_a_format_without_a_relation_skips_the_check(spark: SparkSession) -> None:
    report = check(CheckRequest(Address("memory", "x", "t"), 1), spark=spark)
    assert report.status is CheckStatus.SKIPPED


def test_an_expectation_that_cannot_be_evaluated_is_an_error_and_no_failure(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    impossible = expectations._none("there are no dragons", "dragons")
    monkeypatch.setattr(expectations, "EXPECTATIONS", (*expectations.EXPECTATIONS[1:3], impossible))
    report = check(CheckRequest(address(SAMPLES / "untouched"), 2), spark=spark)
    assert report.status is CheckStatus.ERRORED
    assert [r.status for r in report.results] == [CheckStatus.PASSED, CheckStatus.PASSED, CheckStatus.ERRORED]
    assert "dragons" in report.results[-1].detail
    assert report.reason is not None and report.reason.startswith("there are no dragons: ")


def test_what_fails_in_an_executor_keeps_its_class_its_file_and_its_sentence(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = copied(tmp_path, "untouched")
    files = [path for path in table.rglob("*.parquet") if path.parent.name.startswith("bucket-")]
    for file in files:
        file.write_bytes(b"PAR1 nothing of the kind PAR1")
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    report = check(CheckRequest(address(table), 2), spark=spark)
    assert report.status is CheckStatus.ERRORED and report.reason is not None
    assert re.match(r"\w*(Error|Exception): \S", report.reason), report.reason
    assert any(file.name in report.reason for file in files), report.reason
    assert "\n" not in report.reason and "\tat " not in report.reason


def test_a_version_that_took_the_number_of_ours_is_not_judged(spark: SparkSession, orders: Path) -> None:
    """Whose commit it is does not tell: a retry, or a table put back from a backup, has our name too."""
    report = check(CheckRequest(address(orders), version=4), spark=spark)
    found = VersionIdentity.parse(str(report.identity))
    assert found.version == 4
    ours = CheckRequest(address(orders), version=4, known=(found,))
    assert not check(ours, spark=spark).conflicted
    for known in (replace(found, commit="00"), VersionIdentity(3, "00")):
        report = check(replace(ours, known=(known,)), spark=spark)
        assert (report.status, report.conflicted) == (CheckStatus.SKIPPED, True)
        assert f"version {known.version}: expected {known}, found" in str(report.reason)


# ---- how much is read ----


def version(number: int, sizes: Sequence[int]) -> TableVersion:
    units = {UnitKey("", i): UnitState(i, size, 0, frozenset()) for i, size in enumerate(sizes)}
    return TableVersion(number, number - 1, "", None, units, frozenset(units), rows_stated=0, rows_listed=0)


SIZES = st.lists(st.integers(0, 100), min_size=1, max_size=30)


@given(SIZES, st.integers(1, 10_000), st.integers(0, 2000))
def test_a_sample_stays_within_its_budget_or_is_one_unit(sizes: list[int], number: int, budget: int) -> None:
    target = version(number, sizes)
    chosen = sample(sorted(target.units), version(1, []), target, budget)
    assert chosen
    assert list(chosen) == sorted(set(chosen))
    assert len(chosen) == 1 or sum(target.units[unit].bytes for unit in chosen) <= budget
    if sum(sizes) <= budget:
        assert len(chosen) == len(sizes)


@given(st.integers(2, 30), st.integers(1, 10_000), st.integers(1, 5))
def test_samples_of_successive_runs_come_around_to_every_unit(units: int, first_number: int, step: int) -> None:
    runs = 4 * units
    seen = {
        unit
        for number in range(first_number, first_number + runs * step, step)
        for unit in sample(sorted(version(number, [1] * units).units), version(1, []), version(number, [1] * units), 1)
    }
    assert len(seen) == units


def test_the_report_states_what_was_not_read(spark: SparkSession, orders: Path) -> None:
    report = check(CheckRequest(address(orders), version=4, byte_budget=1), spark=spark)
    assert report.status is CheckStatus.PASSED
    assert report.coverage.startswith("1 of 6 touched units compared, ")
    assert "0 units have the same files as in version 3" in report.coverage


# ---- two versions of one table ----


def test_a_diff_names_every_row_that_differs(spark: SparkSession, paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = tmp_path / "t"
    layout = Layout(
        [("dt", "DATE NOT NULL"), ("id", "INT NOT NULL"), ("x", "DOUBLE"), ("y", "BYTES")],
        ["dt", "id"],
        ["dt"],
        {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"},
    )
    paimon_java.create(table, layout)
    one, two = "2026-11-01", "2026-11-02"
    rows = [["+I", day, n, n / 2, "00ff"] for day in (one, two) for n in range(30)]
    paimon_java.write(table, rows)
    paimon_java.write(table, [["+U", one, 3, "NaN", None], ["-D", one, 4, None, None], ["+I", one, 30, 1.5, "01"]])
    report = diff(address(table), 1, 2, spark=spark)
    changed, same = report.units
    assert not report.equal
    assert changed.difference == Difference(
        missing_count=2,
        extra_count=2,
        missing_rows=({"dt": one, "id": 3, "x": "1.5", "y": "00ff"}, {"dt": one, "id": 4, "x": "2.0", "y": "00ff"}),
        extra_rows=({"dt": one, "id": 3, "x": "NaN", "y": None}, {"dt": one, "id": 30, "x": "1.5", "y": "01"}),
        columns=("x", "y"),
    )
    assert (changed.rows, changed.other_rows, changed.equal) == (30, 30, False)
    assert (same.rows, same.equal, same.difference) == (None, True, Difference())
    assert json.dumps(report.to_json())
    assert "version 1 and 2: 1 of 2 units are equal" in str(report)


def test_a_diff_across_a_compaction_is_equal(spark: SparkSession) -> None:
    report = diff(address(SAMPLES / "customers"), 3, 4, spark=spark)
    assert report.equal
    assert [unit.rows for unit in report.units] == [unit.other_rows for unit in report.units]


def test_a_diff_wants_versions_that_exist(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="expected a version that exists, found 77"):
        diff(address(SAMPLES / "customers"), 1, 77, spark=spark)
    with pytest.raises(RefusedTable):
        diff(Address("memory", "x", "t"), 1, 2, spark=spark)


# ---- independence ----


@pytest.mark.slow
def test_shares_no_code_with_what_it_judges() -> None:
    program = (
        "import sys, nightkeep.checking.check, nightkeep.formats.paimon.spark.view\n"
        "print(*(m for m in sys.modules if m.startswith('nightkeep')))"
    )
    jobs = str(Path(check_module.__file__ or "").parents[2])
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=jobs, check=True)
    loaded = set(found.stdout.split())
    judged = re.compile(
        r"nightkeep\.(kernels|stages|clustering|gate)\b"
        r"|nightkeep\.formats\.\w+\.(data|rewrite|commit|gate|format|deletes\.bucket_vectors)\b"
    )
    assert "nightkeep.formats.paimon.metadata.snapshot" in loaded
    assert not [module for module in loaded if judged.match(module)]
