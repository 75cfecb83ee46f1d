"""Documents -> events at the transport that is configured, by the client of OpenLineage. Never fails a run.

What the client asks for is set by its own variables: OPENLINEAGE_URL, OPENLINEAGE_CONFIG, OPENLINEAGE__TRANSPORT__...
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from nightkeep.records import RunDocument
from nightkeep.redaction import redact

_log = logging.getLogger(__name__)
_SECONDS: Final = 30.0
"""How long is waited for all events. A client tries again where no answer comes."""
_NAMESPACE: Final = "nightkeep"

Client = Any
"""A client of openlineage-python, which is an extra of the wheel."""


def is_configured(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the client's own variables name a transport, and nothing turns it off."""
    if environ.get("OPENLINEAGE_DISABLED", "").lower() == "true":
        return False
    named = any(environ.get(name) for name in ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG"))
    return named or any(name.startswith("OPENLINEAGE__TRANSPORT") for name in environ)


def emit_published(
    documents: Sequence[RunDocument],
    *,
    namespace: str | None = None,
    client: Callable[[], Client] | None = None,
    seconds: float = _SECONDS,
) -> None:
    """Emit the events of those documents that published a version. Without a `client`, that of the environment."""
    published = [document for document in documents if document.committed_version is not None]
    if not published:
        return
    named = namespace or os.environ.get("OPENLINEAGE_NAMESPACE") or _NAMESPACE
    thread = threading.Thread(target=_emit, args=(published, named, client), daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        _log.warning("OpenLineage: no answer within %g s; nothing waits for it", seconds)


def _emit(documents: Sequence[RunDocument], namespace: str, client: Callable[[], Client] | None) -> None:
    try:
        _emit_each(documents, namespace, client)
    except ModuleNotFoundError as missing:
        _log.warning('OpenLineage: no module %s; it comes with pip install "nightkeep[openlineage]"', missing.name)
    except Exception as failure:  # noqa: BLE001 -- a transport is anybody's code, and lineage fails no run
        _log.warning("OpenLineage: events are lost: %s", redact(f"{type(failure).__name__}: {failure}"))


def _emit_each(documents: Sequence[RunDocument], namespace: str, client: Callable[[], Client] | None) -> None:
    # The client is an extra, and takes a while to import.
    from openlineage.client import OpenLineageClient  # noqa: PLC0415 -- see above

    from nightkeep.lineage.run_events import run_events  # noqa: PLC0415 -- see above

    sender = OpenLineageClient() if client is None else client()
    for document in documents:
        for event in run_events(document, namespace):
            sender.emit(event)
