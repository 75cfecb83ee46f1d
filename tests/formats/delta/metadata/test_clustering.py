"""The domain delta.clustering: which columns it names, and who clustered a file."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.formats.delta.hand_log import HandLog, add

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.metadata.clustering import is_of_others, known_columns, provider_of, stated_columns
from nightkeep.formats.delta.metadata.leaf_columns import indexed_leaves
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot

CLUSTERED = ("clustering", "domainMetadata")


def domain(configuration: Any, *, removed: bool = False) -> dict[str, Any]:
    text = configuration if isinstance(configuration, str) else json.dumps(configuration)
    return {"domainMetadata": {"domain": "delta.clustering", "configuration": text, "removed": removed}}


def loaded(folder: Path, *actions: Any, features: tuple[str, ...] = CLUSTERED, **settings: str) -> DeltaSnapshot:
    columns = {"a": "long", "b": "long", "s": {"type": "struct", "fields": [_field("x"), _field("y.z")]}}
    log = HandLog(folder, columns, (), {f"delta.{name}": value for name, value in settings.items()}, features)
    log.commit(0, *log.head, *actions)
    return log.load()


def _field(name: str) -> dict[str, Any]:
    return {"name": name, "type": "long", "nullable": True, "metadata": {}}


@pytest.mark.parametrize(
    ("named", "expected"), [([["a"], ["s", "y.z"]], (("a",), ("s", "y.z"))), (["a", "b"], (("a",), ("b",))), ([], ())]
)
def test_columns_are_paths_of_physical_names(tmp_path: Path, named: Any, expected: Any) -> None:
    found = loaded(tmp_path, domain({"clusteringColumns": named, "domainName": "delta.clustering"}))
    assert found.schema.clustering == expected
    assert pickle.loads(pickle.dumps(found.schema)) == found.schema


def test_without_the_feature_or_once_removed_the_domain_means_nothing(tmp_path: Path) -> None:
    named = {"clusteringColumns": [["a"]]}
    assert not loaded(tmp_path / "a", domain(named), features=("domainMetadata",)).schema.clustering
    assert not loaded(tmp_path / "b", domain(named, removed=True)).schema.clustering
    assert not loaded(tmp_path / "c").schema.clustering


@pytest.mark.parametrize(
    "configuration", ["{", "[]", "{}", {"clusteringColumns": None}, *({"clusteringColumns": [c]} for c in (1, [], [1]))]
)
def test_a_domain_that_cannot_be_understood_concerns_no_reader(tmp_path: Path, configuration: Any) -> None:
    found = loaded(tmp_path, domain(configuration), add("f", partitionValues={}))
    assert not known_columns(found.raw_protocol, found.domains) and len(found.units[0].files) == 1
    with pytest.raises(CorruptMetadata, match=r"domain delta\.clustering"):
        stated_columns(found.raw_protocol, found.domains)


def test_new_files_have_statistics_of_the_clustering_columns(tmp_path: Path) -> None:
    """Whatever the properties choose: PROTOCOL.md, "Writer Requirements for Clustered Table"."""
    named = domain({"clusteringColumns": [["s", "y.z"], ["b"]]})
    few = loaded(tmp_path / "few", named, dataSkippingNumIndexedCols="1")
    chosen = loaded(tmp_path / "chosen", named, dataSkippingStatsColumns="s.x")
    none = loaded(tmp_path / "none", named, dataSkippingNumIndexedCols="0")
    assert [leaf.stored for leaf in indexed_leaves(few.schema)] == [("a",), ("b",), ("s", "y.z")]
    assert [leaf.stored for leaf in indexed_leaves(chosen.schema)] == [("b",), ("s", "x"), ("s", "y.z")]
    assert [leaf.stored for leaf in indexed_leaves(none.schema)] == [("b",), ("s", "y.z")]


def test_who_clustered_a_file_is_kept(tmp_path: Path) -> None:
    adds = [
        add(name, partitionValues={}, **more) for name, more in (("a", {}), ("b", {"clusteringProvider": "liquid"}))
    ]
    ours = add("c", partitionValues={}, clusteringProvider="nightkeep")
    files = loaded(tmp_path, *adds, ours, add("d", partitionValues={}, clusteringProvider=None)).units[0].files
    assert [provider_of(file) for file in files] == [None, "liquid", "nightkeep", None]
    assert [is_of_others(file) for file in files] == [False, True, False, False]
