"""A settled run -> events of OpenLineage, by the transport of Airflow's provider where that is installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from nightkeep.lineage.emitting import emit_published, is_configured
from nightkeep.records import RunDocument


def is_on() -> bool:
    """Whether the provider is configured; without it, whether the environment names a transport."""
    if not _has_provider():
        return is_configured()
    from airflow.providers.openlineage import conf  # noqa: PLC0415 -- DAG files import this module

    return not conf.is_disabled()


def emit_lineage(documents: Sequence[RunDocument]) -> None:
    """Emit the events of the versions that were published. Whatever fails is a line in the log."""
    if not _has_provider():
        emit_published(documents)
        return
    from airflow.providers.openlineage import conf  # noqa: PLC0415 -- DAG files import this module

    emit_published(documents, namespace=conf.namespace(), client=_client)


def _client() -> Any:
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter  # noqa: PLC0415 -- as above

    return OpenLineageAdapter().get_or_create_openlineage_client()


def _has_provider() -> bool:
    return find_spec("airflow.providers.openlineage") is not None
