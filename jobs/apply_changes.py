"""Apply a batch of change rows, from Parquet or JSON Lines files, to an Iceberg table: one snapshot, exactly once."""

import sys

from nightkeep.commands.apply_changes import apply_job
from nightkeep.commands.exit_status import one_line

if __name__ == "__main__":
    sys.exit(one_line(lambda: apply_job(sys.argv[1:])))
