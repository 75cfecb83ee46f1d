"""The Arrow type of a variant, as data files store it."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

VARIANT: Final = pa.struct([pa.field(name, pa.binary(), nullable=False) for name in ("metadata", "value")])
"""The names of a variant and its values, encoded, which no row is chosen or ordered by. Spark reads a variant only
where both are required (Delta's PROTOCOL.md, "Variant data in Parquet"). Fields of other columns are nullable."""
