"""Lift level 0 of a group of Paimon tables in one Spark session: a document per table, a result list for Airflow."""

import sys

from nightkeep.job import run_job
from nightkeep.model import Operation
from nightkeep.script import one_line

if __name__ == "__main__":
    sys.exit(one_line(lambda: run_job(sys.argv[1:], operations=(Operation.UPGRADE,))))
