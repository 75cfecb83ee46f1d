"""The version of this package, which files, commits and documents name."""

from typing import Final

__version__: Final = "0.1.0"
VERSION_LINE: Final = f"nightkeep {__version__}"
"""What `nightkeep --version` prints."""


def works_with(other: str) -> bool:
    """Whether the parts of a run may have this version and the other one: both have the same two first numbers."""
    return other.split(".")[:2] == __version__.split(".")[:2]
