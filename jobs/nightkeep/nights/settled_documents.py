"""Settled tables -> their documents: small ones from the bundles of the run's jobs, the others each from its file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from nightkeep.errors import CorruptMetadata
from nightkeep.nights.settled import Settled
from nightkeep.places import report_store
from nightkeep.records import RunDocument, load_document
from nightkeep.records.bundles import bundles_of_run
from nightkeep.records.json_files import side_by_side

Documents = Mapping[str, RunDocument]
"""Documents of a run by their addresses, as far as they can be read."""


def documents_of(results: Iterable[Settled], reports: str, prefix: str) -> Documents:
    """The documents of settled tables of the run with this prefix, as they are stored."""
    addresses = [address for result in results for address in result.documents]
    known = bundles_of_run(reports, prefix).documents
    left = [address for address in addresses if address not in known or known[address].awaits_check]
    read = dict(zip(left, side_by_side(report_store(reports), _readable, left), strict=True))
    found = {address: read[address] if address in read else known[address] for address in addresses}
    return {address: document for address, document in found.items() if document is not None}


def _readable(address: str) -> RunDocument | None:
    with suppress(CorruptMetadata, OSError):
        return load_document(address)
    return None
