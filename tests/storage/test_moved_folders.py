"""Top-level folders that are in another place: every verb finds them there, by their own names."""

import pickle
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.store_twin import STEP, Step, done, done_to

from nightkeep.errors import CorruptMetadata
from nightkeep.storage import LocalStorage, MovedFolders, whole_store
from nightkeep.storage.exclusive import require_exclusive_create


def moved(folder: Path) -> MovedFolders:
    return MovedFolders(LocalStorage(str(folder)), frozenset({"a", "snapshot"}), "branch/branch-x")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEP, max_size=12))
def test_it_is_a_dict_of_bytes(tmp_path_factory: pytest.TempPathFactory, steps: list[Step]) -> None:
    folder = tmp_path_factory.mktemp("store")
    store, twin = moved(folder), dict[str, bytes]()
    for step in steps:
        assert done(store, *step) == done_to(twin, *step)
    there = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }
    assert there == {f"branch/branch-x/{n}" if n.startswith("a/") else n: data for n, data in twin.items()}
    assert {name: store.read(name) for name in twin} == twin
    assert sorted(found.name for batch in store.walk("") for found in batch) == sorted(twin)


def test_lists_give_names_as_they_were_asked_for(tmp_path: Path) -> None:
    store = moved(tmp_path)
    store.put("snapshot/LATEST", b"1")
    store.put("a/b/c", b"1")
    LocalStorage(str(tmp_path)).put("snapshot/snapshot-9", b"of the whole store")
    assert [found.name for found in store.list("snapshot")] == ["snapshot/LATEST"]
    assert store.folders("a") == ("a/b",)
    found = store.stat("snapshot/LATEST")
    assert found is not None and found.name == "snapshot/LATEST"
    assert not store.exists("snapshot/snapshot-9")
    with store.open("a/b/c") as opened:
        assert opened.read() == b"1"


@pytest.mark.parametrize("name", ["snapshot/../../../manifest/m", "a/..", "../outside"])
def test_no_name_leads_out(tmp_path: Path, name: str) -> None:
    with pytest.raises(CorruptMetadata, match="a name below this folder"):
        moved(tmp_path).read(name)


def test_it_travels_and_its_store_is_known(tmp_path: Path) -> None:
    store = moved(tmp_path)
    assert pickle.loads(pickle.dumps(store)) == store
    assert whole_store(store) == LocalStorage(str(tmp_path)) == whole_store(store.whole)
    require_exclusive_create(store)
