"""Old versions expired, orphan files swept, by each table's policy, and what is left checked, in one session."""

import sys

from nightkeep.commands.exit_status import one_line
from nightkeep.commands.job import sweep_job

if __name__ == "__main__":
    sys.exit(one_line(lambda: sweep_job(sys.argv[1:])))
