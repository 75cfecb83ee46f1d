"""Actions of a checkpoint and of the commits after it -> the state of one version.

PROTOCOL.md, "Action Reconciliation": the key of a file is its path and its vector; the newest action of a key wins.
Raises CorruptMetadata for actions that no valid log can hold. So every reader can read a staged commit that replays
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.formats.delta.metadata.actions import (
    Action,
    Raw,
    in_force,
    long_value,
    parse_object,
    text_map,
    vector_id,
)
from nightkeep.formats.delta.metadata.add_columns import AddColumns, together

ROW_TRACKING: Final = "delta.rowTracking"

FileKey = tuple[str, str | None]
_LiveKey = str | tuple[str, str]
"""The path of a file without a vector; else its path and its vector. Less memory than a FileKey for each file."""
K = TypeVar("K")

_NAMED: Final[Mapping[str, str]] = {"txn": "appId", "domainMetadata": "domain"}
"""Kinds of which a commit may hold several actions, one for each value of this field."""


@dataclass(frozen=True, slots=True)
class LogState:
    """The state of one version. All actions are raw. `commit` has the actions of its own commit; empty if that is gone.

    `vacated` are the raw partition values of files that the own commit removed; empty if it also changed the metadata.
    `unmatched` are the paths of removes whose file was not live. Live files are those of `adds` and, of a checkpoint,
    those of `stored`.
    """

    protocol: Raw
    metadata: Raw
    adds: tuple[Raw, ...]
    stored: AddColumns
    transactions: Mapping[str, int]
    domains: Mapping[str, Raw]
    commit: tuple[Action, ...]
    vacated: tuple[Mapping[str, str | None], ...]
    unmatched: frozenset[str]


def replay(
    checkpoint: Iterable[Action | AddColumns],
    commits: Iterable[tuple[str, Iterable[Action]]],
    own: Iterable[Action] | None = None,
) -> LogState:
    """The state after the last of `commits`, which are (subject, actions), oldest first.

    `own`: the actions of the checkpoint's own commit, if no commit follows the checkpoint. Raises CorruptMetadata.
    """
    # Commits come first: of a checkpoint's files, only those that they touch become Python objects.
    log = _Log()
    last = tuple(own or ())
    log.removed = [(None, body) for kind, body in last if kind == "remove"]
    for subject, actions in commits:
        last = tuple(actions)
        log.apply(subject, last)
    return log.state(last, log.restore(checkpoint))


def high_water_mark(state: LogState) -> int | None:
    """The highest row id ever assigned (PROTOCOL.md, "Row IDs"). Raises CorruptMetadata."""
    domain = state.domains.get(ROW_TRACKING)
    if domain is None:
        return None
    subject = f"domain {ROW_TRACKING}"
    fields = parse_object(str(domain.get("configuration")), subject=subject)
    return long_value(fields, "rowIdHighWaterMark", subject=subject)


def commit_time(state: LogState, version: int) -> int:
    """The in-commit timestamp, in epoch milliseconds. It must be in the first line of the version's own commit."""
    subject = f"commit of version {version}"
    if not state.commit:
        raise MissingFile(subject, "the commit that holds its in-commit timestamp", "a checkpoint only")
    kind, body = state.commit[0]
    if kind != "commitInfo":
        raise CorruptMetadata(subject, "commitInfo as its first action", kind)
    return long_value(body, "inCommitTimestamp", subject=subject)


@dataclass(slots=True)
class _Log:
    """State under construction: what commits did, and beneath it what a checkpoint has.

    `decided` are the keys that commits added or removed. `awaited` are those that a commit removed and no commit before
    it added: a checkpoint may have them. `removed` is for each remove of the last commit the file's add, or its key if
    that is awaited, and the remove.
    """

    single: dict[str, Raw] = field(default_factory=dict)
    named: dict[tuple[str, str], Raw] = field(default_factory=dict)
    files: dict[_LiveKey, Raw] = field(default_factory=dict)
    decided: set[_LiveKey] = field(default_factory=set)
    awaited: set[_LiveKey] = field(default_factory=set)
    removed: list[tuple[_LiveKey | None, Raw]] = field(default_factory=list)
    unmatched: set[str] = field(default_factory=set)

    def apply(self, subject: str, actions: tuple[Action, ...]) -> None:
        """Applies a commit."""
        # The order within a commit has no meaning. Removes are applied first, so that a file may change its vector.
        removes, adds = _by_path(subject, actions, "remove"), _by_path(subject, actions, "add")
        for path in removes.keys() & adds.keys():
            if vector_id(removes[path]) == vector_id(adds[path]):
                raise CorruptMetadata(f"{subject}: {path}", "an add or a remove, or another vector", "both")
        self.removed = [self._remove(path, body) for path, body in removes.items()]
        for body in adds.values():
            self.files[_key(body)] = body
            self.decided.add(_key(body))
        self.single |= _once(subject, ((kind, kind, body) for kind, body in actions if kind in _SINGLE))
        self.named |= _once(
            subject, (((kind, str(body[_NAMED[kind]])), kind, body) for kind, body in actions if kind in _NAMED)
        )

    def _remove(self, path: str, body: Raw) -> tuple[_LiveKey | None, Raw]:
        key = _key(body)
        if key in self.files:
            return None, self.files.pop(key)
        if key in self.decided:
            self.unmatched.add(path)
            return None, body
        self.decided.add(key)
        self.awaited.add(key)
        return key, body

    def restore(self, checkpoint: Iterable[Action | AddColumns]) -> AddColumns:
        """Puts a checkpoint, which holds each key once, beneath the commits. Returns its files that they left alone."""
        singles: dict[str, Raw] = {}
        named: dict[tuple[str, str], Raw] = {}
        files: dict[_LiveKey, Raw] = {}
        columns: list[AddColumns] = []
        for item in checkpoint:
            if isinstance(item, AddColumns):
                columns.append(item)
                continue
            kind, body = item
            if kind == "add":
                _put_new(files, _key(body), body, f"checkpoint: add of {body['path']}")
            elif kind in _SINGLE:
                _put_new(singles, kind, body, f"checkpoint: {kind}")
            elif kind in _NAMED:
                name = str(body[_NAMED[kind]])
                _put_new(named, (kind, name), body, f"checkpoint: {kind} {name}")
        stored, touched = together(columns).apart(map(_path, (*self.decided, *files)))
        for body in touched:
            _put_new(files, _key(body), body, f"checkpoint: add of {body['path']}")
        self.single, self.named = singles | self.single, named | self.named
        self._put_beneath(files)
        return stored

    def _put_beneath(self, files: Mapping[_LiveKey, Raw]) -> None:
        self.removed = [(None, files.get(key, body) if key is not None else body) for key, body in self.removed]
        self.unmatched |= {_path(key) for key in self.awaited - files.keys()}
        self.files = {key: body for key, body in files.items() if key not in self.decided} | self.files

    def state(self, last: tuple[Action, ...], stored: AddColumns) -> LogState:
        protocol, metadata = in_force(self.single, subject="log")
        _require_one_vector(self.files)
        # A metadata change may change the partition columns: older values then name no partition of this version.
        repartitioned = any(kind == "metaData" for kind, _ in last)
        # A remove may lack partition values, or name a file that is not live.
        whole = (body for _, body in self.removed if body.get("partitionValues") is not None)
        return LogState(
            protocol=protocol,
            metadata=metadata,
            adds=tuple(self.files.values()),
            stored=stored,
            transactions={
                n: long_value(body, "version", subject=f"txn {n}") for (k, n), body in self.named.items() if k == "txn"
            },
            domains={
                n: b for (k, n), b in self.named.items() if k == "domainMetadata" and b.get("removed") is not True
            },
            commit=last,
            unmatched=frozenset(self.unmatched),
            vacated=() if repartitioned else tuple(map(_stored_values, whole)),
        )


_SINGLE: Final = ("protocol", "metaData")


def _by_path(subject: str, actions: Iterable[Action], kind: str) -> Mapping[str, Raw]:
    """Actions of one kind by path. Raises CorruptMetadata for two of one path, whatever their vectors."""
    return _once(subject, ((str(body["path"]), kind, body) for action, body in actions if action == kind))


def _once(subject: str, items: Iterable[tuple[K, str, Raw]]) -> dict[K, Raw]:
    bodies: dict[K, Raw] = {}
    for key, kind, body in items:
        _put_new(bodies, key, body, f"{subject}: {kind} of {key}")
    return bodies


def _put_new(known: dict[K, Raw], key: K, body: Raw, subject: str) -> None:
    if key in known:
        raise CorruptMetadata(subject, "once", "twice")
    known[key] = body


def _require_one_vector(files: Mapping[_LiveKey, Raw]) -> None:
    """Raises CorruptMetadata if a path is live with two vectors, or with and without one: rows would be read twice."""
    vectors: dict[str, list[str]] = {}
    for key in files:
        if isinstance(key, tuple):
            vectors.setdefault(key[0], [str(None)] if key[0] in files else []).append(key[1])
    for path, found in vectors.items():
        if len(found) > 1:
            raise CorruptMetadata(f"data file {path}", "one live version of it", f"vectors {', '.join(sorted(found))}")


def _key(body: Raw) -> _LiveKey:
    path, vector = str(body["path"]), vector_id(body)
    return path if vector is None else (path, vector)


def _path(key: _LiveKey) -> str:
    return key if isinstance(key, str) else key[0]


def _stored_values(body: Raw) -> Mapping[str, str | None]:
    return dict(text_map(body, "partitionValues", subject=str(body["path"])))
