"""Second opinion on what a run published for a group of tables, in one Spark session; its documents say what it found."""

import sys

from nightkeep.job import check_job

if __name__ == "__main__":
    sys.exit(check_job(sys.argv[1:]))
