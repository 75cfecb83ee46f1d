"""Submitted to a cluster: print which of these variables tasks have, and which of them the settings of Spark show."""

import json
import os
import sys
from collections.abc import Sequence

from nightkeep.spark.engine import Engine


def held(names: Sequence[str]) -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in names}


def main(given: str) -> None:
    variables: dict[str, str] = json.loads(given)
    os.environ.update(variables)
    with Engine(master="unused: spark-submit names it", task_memory_bytes=256 << 20) as engine:
        (found,) = engine.mapper()(held, [[*variables]], label="variables")
        settings = engine.spark().sparkContext.getConf().getAll()
    shown = [name for name, value in variables.items() if any(value in pair for pair in settings)]
    print(json.dumps({"found": found, "shown": shown}))


if __name__ == "__main__":
    main(*sys.argv[1:])
