"""Audit what others committed to a group of tables: rows, metadata, history and files. Reads only."""

import sys

from nightkeep.commands.exit_status import one_line
from nightkeep.commands.job import run_job
from nightkeep.model import Operation

if __name__ == "__main__":
    sys.exit(one_line(lambda: run_job(sys.argv[1:], operations=(Operation.AUDIT,))))
