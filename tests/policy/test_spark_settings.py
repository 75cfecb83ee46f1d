"""Settings of Spark in a policy: what they may be, which layer has them, and which tables share a session."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from nightkeep.errors import PolicyError
from nightkeep.policy import groups, left_groups, load
from nightkeep.spark import session

POLICY = """\
version: 1
defaults:
  tables_per_session: 3
  spark: {spark.sql.shuffle.partitions: 64, spark.dynamicAllocation.enabled: true}
patterns:
  - {match: "big.*", spark: {spark.executor.memory: 8g}}
tables:
  - {name: one, table: "delta:/one"}
  - {name: big.one, table: "delta:/big1"}
  - {name: two, table: "paimon:/two"}
  - {name: big.two, table: "paimon:/big2"}
  - {name: plain, table: "delta:/plain", spark: {}}
"""


def test_the_highest_layer_has_them_as_a_whole() -> None:
    policy = load("tables.yaml", text=POLICY)
    found = {name: dict(policy.effective(name).settings.spark) for name in ("one", "big.one", "plain")}
    assert found == {
        "one": {"spark.dynamicAllocation.enabled": "true", "spark.sql.shuffle.partitions": "64"},
        "big.one": {"spark.executor.memory": "8g"},
        "plain": {},
    }


def test_tables_share_a_session_with_equal_settings_alone() -> None:
    policy = load("tables.yaml", text=POLICY)
    assert groups(policy) == [("one", "two"), ("big.one", "big.two"), ("plain",)]
    left = {"one", "big.two", "plain"}
    assert left_groups(policy, groups(policy), left) == [("one",), ("big.two",), ("plain",)]
    assert left_groups(policy, [("one",), ("two",), ("big.one",)], {"one", "two"}) == [("one",), ("two",)]
    assert left_groups(policy, [("one", "two"), ("two",)], {"two"}) == [("two", "two")]
    assert left_groups(policy, [], set()) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{spark.hadoop.fs.s3a.secret.key: abc}", "defaults.spark.spark.hadoop.fs.s3a.secret.key: expected no secret"),
        ("{spark.hadoop.x.url: 'jdbc:postgresql://u:passw0rd@db/c'}", "expected no secret in a policy"),
        ("{spark.master: yarn}", "expected a setting that a session may have, found spark.master"),
        ("{executor.memory: 8g}", "expected the name of a setting of Spark"),
        ("{'spark.a b': 8g}", "expected the name of a setting of Spark"),
        ("{spark.executor.memory: [8g]}", "expected a text, a whole number, true or false, found ['8g']"),
        ("8g", "expected a mapping of settings of Spark"),
        ("[]", "expected a mapping of settings of Spark"),
    ],
)
def test_what_is_no_setting_is_refused(text: str, fault: str) -> None:
    with pytest.raises(PolicyError) as raised:
        load("tables.yaml", text=f"version: 1\ndefaults:\n  spark: {text}\n")
    assert "tables.yaml:3" in str(raised.value) and fault in str(raised.value)
    assert "passw0rd" not in str(raised.value)


def test_a_session_of_a_command_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above what the cluster states, and below nothing: only a session that is already there has its own."""
    asked = dict[str, str]()

    def config(name: str, value: str) -> object:
        asked[name] = value
        return builder

    builder = SimpleNamespace(config=config, getOrCreate=lambda: None)
    monkeypatch.setattr(session, "SparkSession", SimpleNamespace(builder=builder))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.executor.memory=4g pyspark-shell")
    own = {"spark.executor.memory": "8g", "spark.executor.cores": "2", "spark.sql.shuffle.partitions": "64"}
    session._build("spark://m:1", "nightkeep", 1 << 30, None, own)
    assert {name: asked[name] for name in own} == own
    assert asked["spark.executor.memoryOverhead"] == "2048m", "two cores have twice the memory beside the heap"
