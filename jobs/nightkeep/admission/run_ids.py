"""A run id and its options -> UsageError if an earlier run of this id had other options."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from nightkeep.admission.order import Order
from nightkeep.errors import CorruptMetadata, UsageError
from nightkeep.policy import EffectivePolicy
from nightkeep.records import RunDocument, document_path, load_document

ASKED: Final = "asked"
"""The key of the options in a document."""


def stored_document(order: Order, table: str) -> RunDocument | None:
    """The document that an attempt of this run stored; None if there is none. Raises CorruptMetadata and OSError."""
    try:
        return load_document(document_path(order.reports, table, run_id=order.run_id, operation=order.operation))
    except FileNotFoundError:
        return None


def require_same(order: Order, policy: EffectivePolicy, *, published: bool) -> None:
    """Raise UsageError if the run's document has other options and the run did work with them.

    `published`: the table has commits of this run. Without a readable document there is nothing to compare with.
    """
    with suppress(CorruptMetadata):
        earlier = stored_document(order, policy.address.name)
        if earlier is not None and (published or earlier.commits):
            require_same_options(earlier, order.options(policy))


def require_same_options(earlier: RunDocument, now: Mapping[str, object]) -> None:
    """Raise UsageError if the run that this document is of had other options."""
    before = earlier.extra.get(ASKED)
    if before is None and "mode" in earlier.extra:
        # Older documents of a removal have no options, only the mode.
        before, compared = {"mode": earlier.extra["mode"]}, {"mode": now.get("mode")}
    else:
        before, compared = before or {}, dict(now)
    if before != compared:
        raise UsageError(
            f"run id {earlier.run_id!r:.200}: expected the options of its first attempt, {_text(before)}, "
            f"found {_text(now)}; a run id belongs to one operation and its options"
        )


def may_have_published(order: Order, table: str) -> bool:
    """Whether this run may have published something of the table: it stores a document before any work."""
    with suppress(CorruptMetadata):
        return stored_document(order, table) is not None
    return True


def _text(options: object) -> str:
    if not isinstance(options, Mapping) or not options:
        return "none"
    return ", ".join(f"{name} = {value!r:.200}" for name, value in sorted(options.items()))
