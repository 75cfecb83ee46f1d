"""Packages of extras that are not installed: one sentence that names the extra, before any work."""

from __future__ import annotations

import importlib.util

import pytest

from nightkeep.api.call_context import new_engine
from nightkeep.errors import UsageError
from nightkeep.extras import missing_module, require_packages


def _without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("nightkeep.extras.find_spec", lambda name: None if name in packages else found(name))


def test_all_missing_packages_are_named_with_the_extra_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "pyspark", "great_expectations")
    with pytest.raises(UsageError, match=r"expected pyspark and great_expectations.*nightkeep\[spark\]"):
        require_packages(("pyspark", "great_expectations", "pyarrow"))


def test_packages_that_are_there_raise_nothing() -> None:
    require_packages(("pyspark", "great_expectations"))


@pytest.mark.parametrize("start", ["spark", "mapper", "exchange"])
def test_an_engine_without_pyspark_starts_nothing(monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    _without(monkeypatch, "pyspark")
    with new_engine("local[1]", 1 << 30) as engine, pytest.raises(UsageError, match="pyspark"):
        getattr(engine, start)()


def test_an_engine_for_checks_starts_nothing_without_great_expectations(monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "great_expectations")
    with new_engine("local[1]", 1 << 30, checks=True) as engine, pytest.raises(UsageError, match="great_expectations"):
        engine.mapper()


def test_the_module_of_spark_4_is_named_where_spark_is_older() -> None:
    older = ModuleNotFoundError("no", name="pyspark.sql.datasource")
    assert "found a release without pyspark.sql.datasource" in str(missing_module("nightkeep.DataSource", older))
    assert "pyspark 4 or later, found none" in str(missing_module("x", ModuleNotFoundError("no", name="pyspark")))


def test_another_missing_module_stays_as_it_is() -> None:
    other = ModuleNotFoundError("no", name="numpy")
    assert missing_module("x", other) is other
