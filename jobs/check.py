"""Check what a run published for a group of tables, in one Spark session, and add the results to its documents.

The scripts that publish check what they publish themselves. This one is for what they left: a process that died
between the two, or a check that could not be finished. It needs nothing but the run's documents.
"""

import sys

from nightkeep.commands.exit_status import one_line
from nightkeep.commands.job import check_job

if __name__ == "__main__":
    sys.exit(one_line(lambda: check_job(sys.argv[1:])))
