"""Apply a batch of change rows, from Parquet or JSON Lines files, to an Iceberg table: one snapshot, exactly once."""

import sys

from nightkeep.apply import apply_job

if __name__ == "__main__":
    sys.exit(apply_job(sys.argv[1:]))
