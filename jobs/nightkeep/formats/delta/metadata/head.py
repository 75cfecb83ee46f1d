"""Log -> protocol and metadata of one version, without its files. Fast for a table of any size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nightkeep.formats.delta.metadata.actions import Action, Raw, in_force, parse_lines, require_lines
from nightkeep.formats.delta.metadata.checkpoints import checkpoint_head
from nightkeep.formats.delta.metadata.features import refuse_features, refuse_reads, supported
from nightkeep.formats.delta.metadata.log_segment import segment
from nightkeep.formats.delta.metadata.schema import is_true
from nightkeep.storage import Storage

_TABLE_KINDS = (b'"protocol"', b'"metaData"', b'"commitInfo"')


@dataclass(frozen=True, slots=True)
class LogHead:
    """The head of one version. `commit_info` is of its own commit; empty if the log does not have it."""

    version: int
    protocol: Raw
    metadata: Raw
    commit_info: Raw

    @property
    def has_commit_times(self) -> bool:
        """Whether each commit holds its own time (PROTOCOL.md, "In-Commit Timestamps")."""
        properties = self.metadata.get("configuration")
        configuration = (
            {str(name): str(value) for name, value in properties.items()} if isinstance(properties, Mapping) else {}
        )
        return has_commit_times(self.protocol, configuration)

    def refuse_changes(self, table: str) -> None:
        """Raises RefusedTable for features that only writers must know and we do not handle."""
        refuse_features(table, self.protocol, self.metadata, reads_values=False)


def has_commit_times(protocol: Raw, configuration: Mapping[str, str]) -> bool:
    """Whether each commit of such a table holds its own time."""
    return "inCommitTimestamp" in supported(protocol) and is_true(configuration, "delta.enableInCommitTimestamps")


def head(storage: Storage, *, table: str, version: int | None = None) -> LogHead:
    """The newest version, or the one given, for callers that read no values.

    Raises RefusedTable for features that readers must know and we do not handle, MissingFile, CorruptMetadata.
    """
    files = segment(storage, version)
    single: dict[str, Raw] = {}
    if files.checkpoint:
        single |= dict(checkpoint_head(storage, files.checkpoint)[0])
    for _, name in files.commits:
        single |= {kind: body for kind, body in _table_actions(storage, name) if kind != "commitInfo"}
    protocol, metadata = in_force(single, subject=f"{table}: log")
    infos = [body for kind, body in _table_actions(storage, files.own) if kind == "commitInfo"] if files.own else []
    refuse_reads(table, protocol, metadata, reads_values=False)
    return LogHead(files.version, protocol, metadata, infos[0] if infos else {})


def _table_actions(storage: Storage, name: str) -> Iterator[Action]:
    """The actions of a commit that are not about files. Lines of file actions are not parsed."""
    data = storage.read(name)
    require_lines(data, subject=name)
    lines = (line for line in data.split(b"\n") if any(kind in line for kind in _TABLE_KINDS))
    kinds = ("protocol", "metaData", "commitInfo")
    return (action for action in parse_lines(b"\n".join(lines), subject=name) if action[0] in kinds)
