"""What a command prints on stderr beside its last sentence: warnings, its whole log, or nothing."""

from __future__ import annotations

import logging
from typing import Final

from nightkeep.errors import UsageError

_OURS: Final = "nightkeep"


def show_log(*, verbose: bool, quiet: bool) -> None:
    """Print the log from here on. Raises UsageError for both options."""
    if verbose and quiet:
        raise UsageError("--verbose and --quiet: expected one of the two, found both")
    level = logging.INFO if verbose else logging.CRITICAL if quiet else logging.WARNING
    logging.getLogger(_OURS).setLevel(level)
    if verbose:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
