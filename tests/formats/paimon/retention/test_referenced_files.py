"""What keeps files alive: the same files that merging each version by itself finds, and nothing in doubt."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.history import play
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.pypaimon_oracle import PyPaimon
from tests.drivers.random_history import random_history
from tests.formats.paimon.contents import SAMPLES, opened
from tests.formats.paimon.keeping import DAYS, KEYLESS, VECTORS, busy, live_names, names, retention
from tests.support.table_storage import storage_of

from nightkeep.errors import CorruptMetadata, EvidenceError, MissingFile, RefusedTable
from nightkeep.formats.paimon.metadata.avro import read_container, write_container
from nightkeep.formats.paimon.metadata.entries import merge_entries, read_index, read_list, read_manifest
from nightkeep.formats.paimon.retention.roots import Kept, RootMetadata
from nightkeep.protocol.table_files import Root
from nightkeep.storage import Storage

ORDERS = SAMPLES / "orders"
EVERY_SAMPLE = sorted(path.name for path in SAMPLES.iterdir())


def _twin(storage: Storage, root: Root) -> dict[str, int | None]:
    """What one snapshot or tag needs, merged by itself, entry by entry."""
    version = root.task
    raw, where = version.raw, version.layout
    keys = [key for key in ("baseManifestList", "deltaManifestList", "changelogManifestList") if raw.get(key)]
    if version.kind is Kept.TAG:
        keys = keys[:2]
    metas = {key: read_list(storage, str(raw[key])).records for key in keys}
    found = {f"manifest/{raw[key]}": raw.get(f"{key}Size") for key in keys}
    found |= {f"manifest/{meta['_FILE_NAME']}": meta["_FILE_SIZE"] for key in keys for meta in metas[key]}
    data = [meta for key in keys[:2] for meta in metas[key]]
    entries = merge_entries(r for meta in data for r in read_manifest(storage, meta).records)
    entries += [r for key in keys[2:] for meta in metas[key] for r in read_manifest(storage, meta).records]
    for entry in entries:
        folder = where.folder(entry["_PARTITION"], entry["_BUCKET"])
        found[f"{folder}/{entry['_FILE']['_FILE_NAME']}"] = entry["_FILE"]["_FILE_SIZE"]
    if index := read_index(storage, raw.get("indexManifest")):
        found[f"manifest/{raw['indexManifest']}"] = None
        found |= {f"index/{record['_FILE_NAME']}": record["_FILE_SIZE"] for record in index.records}
    return found  # type: ignore[return-value]


def _agrees(table: Path) -> int:
    """Whether all roots together keep what each one's twin does, and each by itself no less; how many there are."""
    found = opened(table)
    roots = found.retention.roots(retention())
    twins = {root.id: _twin(storage_of(found), root) for root in roots}
    assert live_names(table) == {name: size for twin in twins.values() for name, size in twin.items()}
    for root in roots:
        own = found.retention.reach(root)
        reached = {name for source in own.sources for batch in found.retention.live(source) for name in _names(batch)}
        assert {*twins[root.id]} <= reached | {*_names(own.files)}
    for name, size in live_names(table).items():
        assert (table / name).stat().st_size == (size or (table / name).stat().st_size)
    return len(roots)


def _names(files: Any) -> list[str]:
    return list(files.column("name").to_pylist())


@pytest.mark.few(4)
@pytest.mark.parametrize("sample", EVERY_SAMPLE)
def test_every_sample_keeps_what_its_versions_read(sample: str) -> None:
    assert _agrees(SAMPLES / sample) >= 1


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", [3, 13, 37, 42])
def test_random_histories_keep_what_their_versions_read(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    history = random_history(seed)
    paimon_java.create(tmp_path / "table", history.layout)
    play(paimon_java, tmp_path / "table", history.steps)
    assert _agrees(tmp_path / "table") > 1


@pytest.mark.parametrize("producer", ["none", "input", "lookup"])
def test_merged_manifests_tags_and_branches(producer: str, paimon_java: PaimonJava, tmp_path: Path) -> None:
    options = {**VECTORS, "manifest.merge-min-count": "3", "changelog-producer": producer}
    table = busy(paimon_java, tmp_path / "table", options=options)
    paimon_java.create_tag(table, "t", snapshot=4)
    branch = paimon_java.create_branch(table, "dev", tag="t")
    paimon_java.create_branch(table, "empty")
    paimon_java.write(branch, [("+I", 1, DAYS[0], "branch")])
    paimon_java.compact_manifests(table)
    paimon_java.truncate(table, {"day": DAYS[0]})

    assert _agrees(table) == 11 + 1 + 3


def test_a_table_without_keys_that_another_engine_wrote_to(
    paimon_java: PaimonJava, pypaimon: PyPaimon, tmp_path: Path
) -> None:
    table = busy(paimon_java, tmp_path / "table", options=KEYLESS, keys=())
    pypaimon.write(table, [("+I", 1, DAYS[1], "other")])
    assert _agrees(table) == 7
    assert {*live_names(table)} <= names(table)


def test_a_chain_breaks_where_numbers_do_not_add_up(tmp_path: Path) -> None:
    table = _copy(tmp_path)
    for number in (4, 5):
        _edit(table / f"snapshot/snapshot-{number}", deltaRecordCount=None)
    assert len({version.newest for version in _versions(table)}) == 3
    assert _agrees(table) == 7


def test_rows_that_do_not_add_up_are_evidence(tmp_path: Path) -> None:
    table = _copy(tmp_path)
    _edit(table / "snapshot/snapshot-4", totalRecordCount=99)
    with pytest.raises(CorruptMetadata, match="entries of 99 rows"):
        live_names(table)


def test_long_lived_changelogs_keep_their_own(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = busy(paimon_java, tmp_path / "table", options={**VECTORS, "changelog-producer": "input"})
    before = live_names(table)
    paimon_java.expire(table, changelog_retain_max=100)
    kinds = [version.kind for version in _versions(table)]
    assert kinds == [Kept.SNAPSHOT, *[Kept.CHANGELOG] * 8]

    kept = live_names(table)

    assert {*kept} <= names(table)
    changelogs = {name for name in before if "/changelog-" in name}
    assert changelogs and changelogs <= {*kept}


def test_changelogs_of_appends_keep_what_was_appended(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = busy(paimon_java, tmp_path / "table")
    paimon_java.expire(table, changelog_retain_max=100)
    kept = live_names(table)
    assert {*kept} <= names(table)
    assert {name for name in names(table) if name.endswith(".parquet")} == {n for n in kept if n.endswith(".parquet")}


def test_roots_and_sources_pickle() -> None:
    found = opened(ORDERS)
    roots = found.retention.roots(retention())
    assert pickle.loads(pickle.dumps(roots)) == roots
    sources = [source for root in roots for source in found.retention.reach(root).sources]
    assert pickle.loads(pickle.dumps(sources)) == sources
    # One keeps no file alive: manifests that are compared with each other.
    assert len(set(sources)) == len(roots) + 1


def test_a_number_that_is_used_again_is_another_root(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = busy(paimon_java, tmp_path / "table", rounds=1)
    paimon_java.create_tag(table, "t", snapshot=1)
    before = {root.id for root in opened(table).retention.roots(retention())}
    paimon_java.rollback(table, snapshot=2)
    paimon_java.write(table, [("+I", 1, DAYS[0], "again")])
    paimon_java.delete_tag(table, "t")
    paimon_java.create_tag(table, "t", snapshot=3)

    after = {root.id for root in opened(table).retention.roots(retention())}

    assert sorted(id.split()[0] for id in before - after) == ["snapshot/snapshot-3", "tag/tag-t"]
    assert sorted(id.split()[0] for id in after - before) == ["snapshot/snapshot-3", "tag/tag-t"]


# ---- in doubt ----


def _first_manifest(table: Path) -> Path:
    list_name = str(_versions(table)[-1].raw["deltaManifestList"])
    return table / "manifest" / str(read_list(storage_of(opened(table)), list_name).records[0]["_FILE_NAME"])


def _lose_manifest(table: Path) -> None:
    _first_manifest(table).unlink()


def _lose_list(table: Path) -> None:
    (table / "manifest" / str(_versions(table)[2].raw["baseManifestList"])).unlink()


def _lose_index_manifest(table: Path) -> None:
    (table / "manifest" / str(_versions(table)[-1].raw["indexManifest"])).unlink()


def _lose_snapshots(table: Path) -> None:
    for path in (table / "snapshot").glob("[sL]*"):
        path.unlink()


def _lose_newest(table: Path) -> None:
    (table / "snapshot/snapshot-7").unlink()


def _cut_snapshot(table: Path) -> None:
    (table / "snapshot/snapshot-3").write_bytes((table / "snapshot/snapshot-3").read_bytes()[:40])


def _cut_manifest(table: Path) -> None:
    manifest = _first_manifest(table)
    manifest.write_bytes(manifest.read_bytes()[:-20])


def _empty_tag(table: Path) -> None:
    (table / "tag").mkdir()
    (table / "tag/tag-t").write_bytes(b"")


def _bare_branch(table: Path) -> None:
    (table / "branch/branch-dev/snapshot").mkdir(parents=True)
    shutil.copy(table / "snapshot/snapshot-3", table / "branch/branch-dev/snapshot")


def _swapped(table: Path) -> None:
    shutil.copy(table / "snapshot/snapshot-3", table / "snapshot/snapshot-4")


def _added_twice(table: Path) -> None:
    manifest = _first_manifest(table)
    container = read_container(manifest.read_bytes(), subject="manifest")
    records = [*container.records[:1], *container.records[:1], *container.records[2:]]
    manifest.write_bytes(write_container(records, container.schema))


DOUBTS: dict[str, tuple[Callable[[Path], None], type[EvidenceError], str]] = {
    "a manifest is missing": (_lose_manifest, MissingFile, "manifest-"),
    "a manifest list is missing": (_lose_list, MissingFile, "manifest-list-"),
    "an index manifest is missing": (_lose_index_manifest, MissingFile, "index-manifest-"),
    "no snapshot": (_lose_snapshots, MissingFile, "snapshot-1 or a newer one"),
    "the newest snapshot is missing": (_lose_newest, MissingFile, "snapshot-7 or a newer one"),
    "half a snapshot": (_cut_snapshot, CorruptMetadata, "snapshot-3"),
    "half a manifest": (_cut_manifest, CorruptMetadata, "manifest-"),
    "an empty tag": (_empty_tag, CorruptMetadata, "tag/tag-t"),
    "a branch without schema": (_bare_branch, MissingFile, "branch/branch-dev/schema"),
    "a snapshot under another number": (_swapped, CorruptMetadata, "its own id"),
    "a file added twice": (_added_twice, CorruptMetadata, "entries of|added and deleted"),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_in_doubt_nothing_is_reported(doubt: str, tmp_path: Path) -> None:
    break_it, error, said = DOUBTS[doubt]
    table = _copy(tmp_path)
    break_it(table)
    with pytest.raises(error, match=said):
        live_names(table)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"type": "format-table"}, "option type = format-table"),
        ({"manifest.format": "orc"}, "option manifest.format"),
        (
            {"data-file.external-paths": "s3://b/x", "data-file.external-paths.strategy": "entropy-inject"},
            "option data-file.external-paths",
        ),
        ({"global-index.external-path": "s3://b/x"}, "option global-index.external-path"),
        ({"metadata.iceberg.storage": "table-location"}, "option metadata.iceberg.storage"),
    ],
)
def test_files_elsewhere_are_refused_by_name(options: dict[str, str], said: str, tmp_path: Path) -> None:
    table = _copy(tmp_path)
    schema = json.loads((table / "schema/schema-0").read_bytes())
    _edit(table / "schema/schema-0", options=schema["options"] | options)
    for verb in (lambda: opened(table).retention.table_files(), lambda: opened(table).retention.roots(retention())):
        with pytest.raises(RefusedTable, match=said):
            verb()


def test_a_data_file_elsewhere_is_refused(tmp_path: Path) -> None:
    table = _copy(tmp_path)
    manifest = _first_manifest(table)
    container = read_container(manifest.read_bytes(), subject="manifest")
    for record in container.records:
        record["_FILE"]["_EXTERNAL_PATH"] = "s3://bucket/elsewhere.parquet"
    manifest.write_bytes(write_container(container.records, container.schema))
    with pytest.raises(RefusedTable, match="a file outside the table's folder"):
        live_names(table)


def test_a_version_that_goes_while_it_is_listed_is_no_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = _copy(tmp_path)
    storage = storage_of(opened(table))
    read = type(storage).read

    def losing(self: Storage, name: str) -> bytes:
        if name == "snapshot/snapshot-1":
            (table / name).unlink(missing_ok=True)
        return read(self, name)  # type: ignore[arg-type]

    monkeypatch.setattr(type(storage), "read", losing)
    assert [version.id for version in _versions(table)] == [2, 3, 4, 5, 6, 7]


def _versions(table: Path) -> list[RootMetadata]:
    return [root.task for root in opened(table).retention.roots(retention())]


def _copy(folder: Path) -> Path:
    return Path(shutil.copytree(ORDERS, folder / "orders"))


def _edit(path: Path, **fields: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_bytes()) | fields))
