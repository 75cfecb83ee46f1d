"""Second opinion on what a run published for a group of tables, in one Spark session, added to its documents."""

import sys

from nightkeep.job import check_job

if __name__ == "__main__":
    sys.exit(check_job(sys.argv[1:]))
