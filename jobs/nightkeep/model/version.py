"""The version of this package, which files, commits and documents name."""

from typing import Final

__version__: Final = "0.1.0"
