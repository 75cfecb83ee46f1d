"""Iceberg's REST catalog: pyiceberg's client with time limits, and tables as the server describes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pydantic import ValidationError
from pyiceberg.catalog.rest import RestCatalog
from requests import Timeout

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, decode
from nightkeep.redaction import learn
from nightkeep.silence import note_silence, patience, require_answering, server_of

if TYPE_CHECKING:
    from requests import Response, Session

COMMIT_SECONDS: Final = 300.0
"""Between two bytes of the answer to a change, such as a commit. A read waits for PATIENCE."""
_CHANGED: Final = re.compile("/(namespaces|transactions)(/|$)")
"""In paths of what a request changes. Others are asked for a token."""


class PatientRestCatalog(RestCatalog):
    """pyiceberg's catalog, whose requests fail after a time limit. The outcome of such a commit is unknown. A server
    that was silent when it was last asked is not asked again for a while.

    Its constructor already asks for a token and for the server's settings.
    """

    def _config_headers(self, session: Session) -> None:
        # pyiceberg calls this for each new session, before the first request.
        session.request = partial(_asked, session.request)  # type: ignore[method-assign]
        super()._config_headers(session)


def _asked(request: Callable[..., Response], method: str, url: str, **options: Any) -> Response:
    """The answer within the time limits, of which pyiceberg itself sets none. Raises Unreachable, and what requests
    raises."""
    seconds, server = patience(), f"the catalog at {server_of(url)}"
    if method.upper() not in ("GET", "HEAD") and _CHANGED.search(urlsplit(url).path):
        # Not without trying: all the work before it would be lost.
        return request(method, url, **{"timeout": (seconds, COMMIT_SECONDS), **options})
    require_answering(server)
    try:
        return request(method, url, **{"timeout": (seconds, seconds), **options})
    except Timeout:
        note_silence(server)
        raise


def open_rest(name: str, settings: dict[str, str]) -> RestCatalog:
    """The catalog at the `uri` of the settings. Its answers hold all snapshots of a table.

    The configuration of client or server may otherwise limit answers to snapshots that a branch or tag points to.
    """
    catalog = PatientRestCatalog(name, **settings)
    catalog.properties["snapshot-loading-mode"] = "all"
    return catalog


@dataclass(frozen=True, slots=True)
class Served:
    """A table as the server sent it, including fields that pyiceberg does not know.

    `access` are the settings for the table's store that came with it. They are stronger than the catalog's own.
    """

    raw: Raw
    location: str
    access: Mapping[str, str] = field(repr=False)


def served(catalog: RestCatalog, identifier: tuple[str, ...]) -> Served:
    """What the server answers about the table. Raises what RestCatalog.load_table raises, and CorruptMetadata."""
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
    location = str(answer.get("metadata-location") or "")
    return Served(raw, location, _access(answer, location or str(raw.get("location", ""))))


def _access(answer: Raw, location: str) -> Mapping[str, str]:
    """Credentials of the longest prefix count, and more than the table's `config` (specification, LoadTableResult)."""
    offered = answer.get("storage-credentials")
    stated = [each for each in offered if isinstance(each, dict)] if isinstance(offered, list) else []
    fitting = [each for each in stated if location.startswith(str(each.get("prefix", "")))]
    best = max(fitting, key=lambda each: len(str(each.get("prefix", ""))), default={})
    settings: dict[str, str] = {}
    for config in (answer.get("config"), best.get("config")):
        if isinstance(config, dict):
            settings |= {str(name): str(value) for name, value in config.items() if value is not None}
    learn(settings)
    return settings


@contextmanager
def _listening(catalog: RestCatalog) -> Iterator[list[bytes]]:
    """Collect the catalog's answers to requests of this thread. Other threads may share the session."""
    answers: list[bytes] = []
    thread = get_ident()

    def collect(response: Response, *_: object, **__: object) -> None:
        if response.ok and get_ident() == thread:
            answers.append(response.content)

    hooks = catalog._session.hooks["response"]
    hooks.append(collect)
    try:
        yield answers
    finally:
        hooks.remove(collect)
