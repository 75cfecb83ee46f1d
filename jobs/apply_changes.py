"""Apply a batch of change rows, from Parquet or JSON Lines files, to an Iceberg table: one snapshot, exactly once."""

import sys

from nightkeep.apply import apply_job
from nightkeep.script import one_line

if __name__ == "__main__":
    sys.exit(one_line(lambda: apply_job(sys.argv[1:])))
