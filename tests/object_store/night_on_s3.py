"""Run as a program with a session of its own: a policy's tables cared for and checked -> their documents as JSON."""

import json
import sys
from pathlib import Path

from nightkeep.groups.session.run_group import run_group
from nightkeep.groups.session.table_group import TableGroup
from nightkeep.policy import load
from nightkeep.spark.engine import Engine

if __name__ == "__main__":
    file = Path(sys.argv[1])
    policy = load(file)
    names = tuple(sys.argv[2:])
    group = TableGroup(policy, names, "night-1", str(file.parent / "reports"))
    with Engine(master="local[2]", task_memory_bytes=1 << 30) as engine:
        cared = list(run_group(group, (), engine))
    print(json.dumps([each.document.to_json() for each in cared]))
