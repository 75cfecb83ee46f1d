"""Optimize a group of tables in one Spark session: files packed, or rows clustered; a document per table."""

import sys

from nightkeep.commands.exit_status import one_line
from nightkeep.commands.job import run_job
from nightkeep.model import Operation

if __name__ == "__main__":
    sys.exit(one_line(lambda: run_job(sys.argv[1:], operations=(Operation.OPTIMIZE,))))
