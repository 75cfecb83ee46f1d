"""Iceberg's REST catalog: pyiceberg's client with time limits, and tables as the server describes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError
from pyiceberg.catalog.rest import RestCatalog

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, decode

if TYPE_CHECKING:
    from requests import Response, Session

PATIENCE: Final = (30, 300)
"""Time limits in seconds: to connect, and between two bytes of an answer. pyiceberg itself sets no limit."""


class PatientRestCatalog(RestCatalog):
    """pyiceberg's catalog, whose requests fail after a time limit. The outcome of such a commit is unknown.

    Its constructor already asks for a token and for the server's settings.
    """

    def _config_headers(self, session: Session) -> None:
        # pyiceberg calls this for each new session, before the first request.
        session.request = partial(session.request, timeout=PATIENCE)  # type: ignore[method-assign]
        super()._config_headers(session)


def open_rest(name: str, settings: dict[str, str]) -> RestCatalog:
    """The catalog at the `uri` of the settings. Its answers hold all snapshots of a table.

    The configuration of client or server may otherwise limit answers to snapshots that a branch or tag points to.
    """
    catalog = PatientRestCatalog(name, **settings)
    catalog.properties["snapshot-loading-mode"] = "all"
    return catalog


def served(catalog: RestCatalog, identifier: tuple[str, ...]) -> tuple[Raw, str]:
    """The table's metadata as the server sent it, including fields that pyiceberg does not know; and its location.

    Raises what RestCatalog.load_table raises, and CorruptMetadata.
    """
    subject = ".".join((catalog.name, *identifier))
    with _listening(catalog) as answers:
        try:
            catalog.load_table(identifier)
        except ValidationError:
            # Metadata that pyiceberg cannot parse is returned all the same: the caller refuses the feature by name.
            if not answers:
                raise
    answer = decode(answers[-1], subject=subject)
    raw = answer.get("metadata")
    if not isinstance(raw, dict):
        raise CorruptMetadata(f"{subject}: the catalog's answer", "table metadata", "none")
    return raw, str(answer.get("metadata-location") or "")


@contextmanager
def _listening(catalog: RestCatalog) -> Iterator[list[bytes]]:
    """Collect the catalog's answers to requests of this thread. Other threads may share the session."""
    answers: list[bytes] = []
    thread = get_ident()

    def hear(response: Response, *_: object, **__: object) -> None:
        if response.ok and get_ident() == thread:
            answers.append(response.content)

    hooks = catalog._session.hooks["response"]
    hooks.append(hear)
    try:
        yield answers
    finally:
        hooks.remove(hear)
