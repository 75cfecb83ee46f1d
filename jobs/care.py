"""What their policies ask for a group of tables, checked, in one Spark session: a document per table and operation.

`--operation` names one operation to do instead, whichever it is. The other scripts are named for the one operation
they do. A night needs this one: a table may ask for several operations in turn, and a session for each of them would
cost more than the work.
"""

import sys

from nightkeep.commands.exit_status import one_line
from nightkeep.commands.job import run_job

if __name__ == "__main__":
    sys.exit(one_line(lambda: run_job(sys.argv[1:], operations=())))
