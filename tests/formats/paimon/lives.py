"""Random lives of Paimon tables: Java writes, compacts, tags, branches, rolls back and expires beside our upkeep."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.paimon.appended import operate
from tests.formats.paimon.breaking import breaking
from tests.formats.paimon.contents import opened
from tests.formats.paimon.keeping import COLUMNS, rows
from tests.formats.paimon.upgrade import upgrade
from tests.retention.lives import OWN, Life
from tests.support.faulty_store import Fuse

from nightkeep.formats.paimon.metadata.avro import read_container
from nightkeep.model import Operation, Outcome
from nightkeep.protocol.table_files import OpenFiles

DAYS = ("2026-11-01", "a b=c:%\u00e9")
"""No slash: see random_history.py."""
KINDS = (
    ("deletion-vectors.bitmap64", "true"),
    ("changelog-producer", "input"),
    ("changelog-producer", "lookup"),
    ("manifest.merge-min-count", "2"),
    ("num-sorted-run.compaction-trigger", "2"),
    ("target-file-size", "1 kb"),
)
_NAME = re.compile(r"(data|changelog|manifest|manifest-list|index-manifest|index|stat)-.+|\..+\.tmp|staged-nk-.+")

Version = tuple[str, str]
"""A branch, empty for the main one, and the name of a snapshot's or a tag's file."""


class PaimonLife(Life):
    def __init__(self, seed: int, folder: Path, java: PaimonJava) -> None:
        super().__init__(seed, folder)
        self.java = java
        chance = self.random
        options = dict(chance.sample(KINDS, chance.randrange(3)))
        keyed = chance.random() < 0.8
        options |= {"bucket": "1" if keyed else "-1", "snapshot.num-retained.min": "1"}
        options |= {"snapshot.time-retained": chance.choice(("0 ms", "1 h")), "snapshot.num-retained.max": "100"}
        if not keyed:
            options.pop("changelog-producer", None)
            options |= {"compaction.min.file-num": "2"}
        else:
            options |= {"deletion-vectors.enabled": "true", "write-only": "true"}
        self.keyed = keyed
        java.create(folder, Layout(COLUMNS, ("id", "day") if keyed else (), ["day"], options))
        self.told.append(f"{options}")
        self.write()
        if chance.random() < 0.5:
            # The second one marks rows of what the first one made.
            for full in (True, False):
                self.write()
                self.lift(full=full)

    # What the table is

    def opened(self) -> OpenFiles:
        return opened(self.folder).retention

    def breaking(self, fuse: Fuse) -> AbstractContextManager[None]:
        return breaking(fuse)

    def care(self, run_id: str) -> Outcome:
        if not self.keyed:
            return operate(self.folder, Operation.OPTIMIZE, run_id=run_id).outcome
        return upgrade(self.folder, run_id=run_id, full=self.random.random() < 0.3).outcome

    def versions(self) -> Sequence[Version]:
        found = [("", path.name) for path in self.folder.glob("tag/tag-*")]
        for branch in self.branches():
            names = self.at(branch).glob("snapshot/snapshot-*")
            found += [(branch, name) for name in sorted((path.name for path in names), key=_number)]
        return sorted(found, key=lambda version: not version[0])

    def read(self, version: Version) -> Any:
        branch, name = version
        if name.startswith("tag-"):
            return rows(self.java, self.folder, scan_tag__name=name.removeprefix("tag-"))
        return rows(self.java, self.at(branch), _number(name))

    def at(self, branch: str) -> Path:
        return self.folder / f"branch/branch-{branch}" if branch else self.folder

    def branches(self) -> list[str]:
        found = (path.name.removeprefix("branch-") for path in self.folder.glob("branch/branch-*"))
        return ["", *sorted(name for name in found if any(self.at(name).glob("schema/schema-*")))]

    def head(self) -> int:
        return max(_number(path.name) for path in self.folder.glob("snapshot/snapshot-*"))

    def needed(self) -> set[str]:
        """By names alone, which no two files share; what Java lists of each snapshot is among them."""
        bare = set[str]()
        for path in [*self.folder.glob("**/snapshot/snapshot-*"), *self.folder.glob("**/tag/tag-*")]:
            # Expiry takes the changelog of a snapshot whose copies, tags and branches made of them, stay.
            copied = path.parent != self.folder / "snapshot"
            bare |= self.named(json.loads(path.read_bytes()), copied=copied)
        for path in self.folder.glob("**/changelog/changelog-*"):
            bare |= self.changes(json.loads(path.read_bytes()))
        listed = {file.name for version in self.main() for file in self.java.files(self.folder, snapshot=version)}
        assert listed <= bare
        return {name for name in self.files() if name.rpartition("/")[2] in bare}

    def main(self) -> list[int]:
        return sorted(_number(path.name) for path in self.folder.glob("snapshot/snapshot-*"))

    def named(self, snapshot: dict[str, Any], *, copied: bool) -> set[str]:
        """Files that a reader of one snapshot opens, and those of its changelog."""
        lists = [snapshot["baseManifestList"], snapshot["deltaManifestList"]]
        adds, found = Counter[str](), {*lists}
        for entry in self.entries(lists, found):
            for name in _files(entry):
                adds[name] += 1 if entry["_KIND"] == 0 else -1
        found |= {name for name, count in adds.items() if count > 0}
        changelog = snapshot.get("changelogManifestList")
        if changelog and (not copied or (self.folder / "manifest" / changelog).exists()):
            found.add(changelog)
            found |= {name for entry in self.entries([changelog], found) for name in _files(entry)}
        if index := snapshot.get("indexManifest"):
            found |= {index, *(record["_FILE_NAME"] for record in self.records(index))}
        return found | ({snapshot["statistics"]} if snapshot.get("statistics") else set())

    def changes(self, changelog: dict[str, Any]) -> set[str]:
        lists = [changelog["changelogManifestList"]] if changelog.get("changelogManifestList") else []
        found = {*lists}
        return found | {name for entry in self.entries(lists, found) for name in _files(entry)}

    def entries(self, lists: Sequence[str], found: set[str]) -> Iterator[dict[str, Any]]:
        for manifest in (each["_FILE_NAME"] for name in lists for each in self.records(name)):
            found.add(manifest)
            yield from self.records(manifest)

    def records(self, manifest: str) -> Sequence[Any]:
        path = self.folder / "manifest" / manifest
        return read_container(path.read_bytes(), subject=manifest).records

    def is_known(self, name: str) -> bool:
        folder, _, bare = name.rpartition("/")
        metadata = re.fullmatch("manifest|index|statistics|day=[^/]+/bucket-[0-9]+", folder)
        versions = re.fullmatch("(branch/[^/]+/)?(snapshot|changelog)", folder)
        hidden = bare.startswith((".", "staged-"))
        return bool(_NAME.fullmatch(bare) and (metadata or (versions and hidden)))

    def plants(self) -> Sequence[str]:
        days = sorted(path.name for path in self.folder.glob("day=*"))
        bucket = f"{self.random.choice((*days, 'day=gone'))}/bucket-0"
        data = [f"data-{self.uuid()}-0.parquet", f"changelog-{self.uuid()}-0.parquet", f".data-{self.uuid()}.tmp"]
        metadata = [f"manifest/manifest-{self.uuid()}-0", f"manifest/index-manifest-{self.uuid()}-0"]
        metadata += [f"manifest/manifest-list-{self.uuid()}-0", f"index/index-{self.uuid()}-0"]
        metadata.append(f"snapshot/.snapshot-{self.number()}.{self.uuid()}.tmp")
        return [f"{bucket}/{data[0]}", f"{bucket}/{data[1]}", *metadata]

    def strange(self) -> Sequence[str]:
        return [f"day=2026-11-01/bucket-0/report-{self.number()}.txt", f"{OWN}note-{self.number()}", "manifest/notes"]

    # Steps

    def others(self) -> Sequence[Callable[[], object]]:
        rare = [self.truncate, self.tag, self.delete_tag, self.branch, self.drop_branch, self.roll_back, self.consume]
        return [*[self.write] * 4, *[self.compact] * 2, *rare, self.merge_manifests, self.leave, self.plant]

    def write(self) -> None:
        branch = self.random.choice(self.branches()[-2:])
        kinds = ("+I", "+U", "-D") if self.keyed else ("+I",)
        days = self.random.choice((DAYS, DAYS[:1]))
        new = [(self.random.choice(kinds), self.random.randrange(12), day, f"{self.number()}") for day in days * 3]
        self.java.write(self.at(branch), new, Writer(user="writer"))

    def compact(self) -> None:
        self.lift(full=self.random.random() < 0.4)

    def lift(self, *, full: bool) -> None:
        if self.keyed:
            self.java.compact(self.folder, Compaction(full=full, user="compactor"))

    def leave(self) -> None:
        """Java writes a compaction, and dies before it commits."""
        if self.keyed:
            self.java.prepare_compact(self.folder, Compaction(full=True, user="killed"))

    def merge_manifests(self) -> None:
        self.java.compact_manifests(self.folder)

    def truncate(self) -> None:
        self.java.truncate(self.folder, *self.random.choice(([], [{"day": DAYS[0]}])))

    def tag(self) -> None:
        self.java.create_tag(self.folder, f"t{self.number()}", snapshot=self.random.choice(self.main()))

    def tags(self) -> list[str]:
        return sorted(path.name.removeprefix("tag-") for path in self.folder.glob("tag/tag-*"))

    def delete_tag(self) -> None:
        """Not one that a branch was made of."""
        free = [tag for tag in self.tags() if not tag.startswith("of-")]
        if free:
            self.java.delete_tag(self.folder, self.random.choice(free))

    def branch(self) -> None:
        name = f"b{self.number()}"
        self.java.create_tag(self.folder, f"of-{name}", snapshot=self.random.choice(self.main()))
        self.java.create_branch(self.folder, name, tag=f"of-{name}")

    def drop_branch(self) -> None:
        _, *others = self.branches()
        if others:
            self.java.drop_branch(self.folder, self.random.choice(others))

    def roll_back(self) -> None:
        """Numbers of later snapshots are used again, and tags of such go."""
        to = self.random.choice(self.main()[-3:])
        self.java.rollback(self.folder, snapshot=to)
        self.seen = {key: rows for key, rows in self.seen.items() if key[0] or _number(key[1]) <= to or "tag" in key[1]}

    def consume(self) -> None:
        self.java.set_consumer(self.folder, "reader", snapshot=self.random.choice(self.main()))

    def engine_expires(self) -> None:
        self.java.expire(self.folder, retain_max=self.random.randrange(1, 4))


def _number(name: str) -> int:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0


def _files(entry: Any) -> list[str]:
    return [entry["_FILE"]["_FILE_NAME"], *(entry["_FILE"].get("_EXTRA_FILES") or ())]
