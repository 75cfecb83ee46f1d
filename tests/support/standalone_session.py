"""Submitted to a cluster: start a session for tasks of so many bytes and print how it was set, or why there is none."""

import json
import os
import sys

from nightkeep.errors import Unreachable
from nightkeep.spark.engine import Engine

NAMES = (
    "spark.app.name",
    "spark.executor.cores",
    "spark.executor.memory",
    "spark.executor.memoryOverhead",
    "spark.cores.max",
    "spark.eventLog.enabled",
    "spark.ui.enabled",
    "spark.log.level",
    "spark.task.maxFailures",
)


def main(task_memory: str) -> None:
    os.environ.setdefault("NIGHTKEEP_EXECUTOR_SECONDS", "20")
    with Engine(master="unused: spark-submit names it", task_memory_bytes=int(task_memory)) as engine:
        try:
            conf = engine.spark().sparkContext.getConf()
        except Unreachable as failure:
            print(json.dumps({"unreachable": str(failure)}))
            return
        print(json.dumps({name: conf.get(name) for name in NAMES}))


if __name__ == "__main__":
    main(*sys.argv[1:])
