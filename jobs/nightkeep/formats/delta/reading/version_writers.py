"""Commits of the log, by their numbers -> who made each, by its commitInfo and the application of its transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nightkeep.errors import MissingFile
from nightkeep.formats.delta.metadata.actions import parse_lines
from nightkeep.formats.delta.metadata.naming import ENGINE, commit_name
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.formats.delta.reading.past import author_of, claim_of, kind_of
from nightkeep.protocol.version_writers import WrittenSince, WrittenVersion, numbered_versions
from nightkeep.storage import Storage


def written_since(storage: Storage, newest: DeltaSnapshot, *, since: int, most: int) -> WrittenSince:
    """As `protocol.version_writers.ReadsWriters`: one read for each version, one after the other, as commits may be
    large."""

    def read(numbers: Iterable[int]) -> Iterator[WrittenVersion | None]:
        return (_written(storage, number) for number in numbers)

    return numbered_versions(read, newest=newest.version, since=since, most=most)


def _written(storage: Storage, version: int) -> WrittenVersion | None:
    name = commit_name(version)
    try:
        actions = tuple(parse_lines(storage.read(name), subject=name))
    except MissingFile:
        return None
    info = next((body for kind, body in actions if kind == "commitInfo"), {})
    made_ms = info.get("inCommitTimestamp", info.get("timestamp"))
    author, applications = author_of(info), [body.get("appId") for kind, body in actions if kind == "txn"]
    return WrittenVersion(
        version=version,
        kind=kind_of(info),
        author=author,
        claim=claim_of([body for kind, body in actions if kind in ("add", "remove")]),
        ours=author.startswith(f"{ENGINE}/"),
        application=next((each for each in applications if isinstance(each, str)), None),
        time_ms=made_ms if isinstance(made_ms, int) else None,
    )
