"""What the check's import of Great Expectations leaves out, and that nobody else misses it."""

import json
import subprocess
import sys

import pytest

_SCRIPT = """
import json, sys, threading
from importlib.util import find_spec
import nightkeep.checking.check
from nightkeep.checking.quick_import import quick_import

parts = ("scipy.linalg", "narwhals", "boto3", "botocore", "pyspark.sql.connect.dataframe")
loaded = [name for name in parts if name in sys.modules]
found = []
with quick_import():
    other = threading.Thread(target=lambda: found.append(find_spec("boto3") is not None))
    other.start()
    other.join()
import boto3
from pyspark.sql.connect import dataframe
from scipy import stats
import altair
used = [boto3.__name__, dataframe.__name__, float(stats.norm.cdf(0)), altair.Chart.__name__]
print(json.dumps([loaded, found, used]))
"""


@pytest.mark.slow
def test_the_check_loads_no_package_that_it_does_not_use_and_others_still_can() -> None:
    run = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)
    loaded, found, used = json.loads(run.stdout.splitlines()[-1])
    assert loaded == []
    assert found == [True]
    assert used == ["boto3", "pyspark.sql.connect.dataframe", 0.5, "Chart"]
