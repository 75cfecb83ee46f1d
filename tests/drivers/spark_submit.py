"""spark-submit as a process that has no setting of the tests: Spark hands some of them on to a cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyspark
from tests.drivers.toolchain import SHORT_LIVED

SPARK_HOME: Final = Path(pyspark.__file__).parent
SPARK_SUBMIT: Final = str(SPARK_HOME / "bin" / "spark-submit")
QUICK_JVM: Final = " ".join(SHORT_LIVED)
_OF_TESTS: Final = ("AWS", "HADOOP", "KUBE", "NIGHTKEEP", "PYSPARK", "PYTHON", "SPARK", "VIRTUAL")


def options(master: str, mode: str, settings: Mapping[str, str]) -> list[str]:
    """The arguments before the script."""
    return [
        *("--master", master, "--deploy-mode", mode),
        *(each for name, value in settings.items() for each in ("--conf", f"{name}={value}")),
    ]


def environment(own: Mapping[str, str]) -> Mapping[str, str]:
    """That of the tests without their settings, and `own`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OF_TESTS)}
    spark = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SUBMIT_OPTS": QUICK_JVM}
    return {**kept, **spark, **own}
