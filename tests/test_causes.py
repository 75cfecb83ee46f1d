"""Failures as engines and workers report them: the sentence is of the innermost cause."""

import errno
import os
import pickle

import pytest

from nightkeep.causes import cause_in, failure_text, one_sentence
from nightkeep.records import failure_outcome

WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/spark/session.py", line 241, in run
    results = [outcome(partial(_done, *sent.value, int(number.as_py()))) for number in numbers]
              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/spark/worker.py", line 3, in write
    raise failure
{cause}
"""
JAVA = """An error occurred while calling o46.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, \
most recent failure: Lost task 0.3 in stage 0.0 (TID 3) (host executor 1): {first}

\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2844)
Driver stacktrace:
\tat org.apache.spark.api.python.PythonRDD$.collect(PythonRDD.scala:1)
{more}"""
FULL = "OSError: [Errno 28] No space left on device: '/tables/t/part-0.parquet'"
DIRECTLY = "The above exception was the direct cause of the following exception:"
DURING = "During handling of the above exception, another exception occurred:"
BYTES = "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"
TRACE = WORKER.format(cause=FULL).split("below.\n")[1]
ROFS = "Caused by: java.io.IOException: Read-only file system\n\tat a.B"
LOST = "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: "


DEAD_MASTER = """An error occurred while calling None.org.apache.spark.sql.classic.SparkSession.
: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.
This stopped SparkContext was created at:

org.apache.spark.api.java.JavaSparkContext.<init>(JavaSparkContext.scala:59)
py4j.Gateway.invoke(Gateway.java:238)

And it was stopped at:

org.apache.spark.SparkContext$$anon$3.run(SparkContext.scala:2295)

The currently active SparkContext was created at:

(No active SparkContext.)
         \n\tat org.apache.spark.SparkContext.assertNotStopped(SparkContext.scala:126)
"""
"""What Spark 4 raises a minute after a session asked for spark://127.0.0.1:1."""
ENDED_WORKER = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent \
failure: Lost task 0.0 in stage 0.0 (TID 0) (192.0.2.2 executor driver): org.apache.spark.SparkException: Python \
worker exited unexpectedly (crashed).
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1.applyOrElse(PythonRunner.scala:678)
Caused by: java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
\t... 22 more

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:3114)
Caused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).
\tat org.apache.spark.api.python.PythonRunner$$anon$3.read(PythonRunner.scala:1056)
Caused by: java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
"""


class PythonException(Exception):
    """As pyspark's."""


class Py4JJavaError(Exception):
    """As py4j's."""


def failed(reason: str) -> str:
    return JAVA.format(first=reason, more="")


def chained(inner: str, outer: str, words: str) -> str:
    block = 'Traceback (most recent call last):\n  File "f", line 1, in f\n    f()\n    ^^^\n'
    return f"{block}{inner}\n\n{words}\n\n{block}{outer}\n"


@pytest.mark.parametrize(
    "failure, expected",
    [
        (PythonException(WORKER.format(cause=FULL)), FULL),
        (
            Py4JJavaError(
                JAVA.format(
                    first=f"PythonException: {TRACE}",
                    more="Caused by: java.lang.IllegalStateException: later\n\tat a.B.c(D.java:1)",
                )
            ),
            FULL,
        ),
        (Py4JJavaError(JAVA.format(first="x", more=ROFS)), "IOException: Read-only file system"),
        (PythonException(chained(FULL, "ValueError: outer", DIRECTLY)), FULL),
        (PythonException(chained("KeyError: 1", FULL, DURING)), FULL),
        (PythonException(WORKER.format(cause=BYTES)), BYTES),
        (PythonException(WORKER.format(cause="pyarrow.lib.ArrowInvalid: first\nsecond")), "ArrowInvalid: first second"),
        (Py4JJavaError(DEAD_MASTER), "IllegalStateException: Cannot call methods on a stopped SparkContext."),
        (Py4JJavaError(ENDED_WORKER), "SparkException: Python worker exited unexpectedly (crashed)."),
        (OSError(errno.EROFS, "Read-only file system", "/t"), "OSError: [Errno 30] Read-only file system: '/t'"),
        (KeyError("k"), "KeyError: 'k'"),
        (ValueError(""), "ValueError"),
    ],
)
def test_the_sentence_is_of_the_innermost_cause(failure: Exception, expected: str) -> None:
    sentence = failure_text(failure)
    assert sentence.startswith(expected) and sentence[len(expected) :][:2] in ("", "; ")
    assert "Traceback" not in sentence and "^^" not in sentence and "\n" not in sentence
    assert failure_text(pickle.loads(pickle.dumps(failure))) == sentence


@pytest.mark.parametrize(
    "text, advice",
    [
        (FULL, "free space there"),
        ("OSError: [Errno 30] Read-only file system: '/x'", "mount it for writing"),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.", "install Java 17"),
        ("java.lang.UnsupportedClassVersionError: a/B (class file version 61.0)", "run Spark on Java 17"),
        ("Job aborted: All masters are unresponsive! Giving up.", "start the master that spark.master names"),
        ("IllegalStateException: Cannot call methods on a stopped SparkContext", "Spark has ended the session"),
        (failed("java.lang.OutOfMemoryError: Java heap space"), "raise spark.executor.memory, or"),
        (failed("java.lang.OutOfMemoryError: Direct buffer memory"), "raise spark.executor.memoryOverhead"),
        (failed(f"{LOST}Container killed by YARN for exceeding limits"), "raise spark.executor.memoryOverhead"),
        (failed(f"{LOST}Command exited with code 137"), "killed, most often by the kernel"),
        (failed(f"{LOST}Remote RPC client disassociated."), "an executor is lost"),
        (failed("Python worker exited unexpectedly (crashed)"), "a worker ended"),
    ],
)
def test_known_causes_come_with_what_to_do(text: str, advice: str) -> None:
    sentence = failure_text(RuntimeError(text))
    assert advice in sentence and "\tat " not in sentence and "Driver stacktrace" not in sentence


def test_a_text_of_another_process_is_read_alike() -> None:
    java = failed("java.lang.OutOfMemoryError: Java heap space")
    for text in (java, f"Py4JJavaError: {java}"):
        assert cause_in(text).startswith("OutOfMemoryError: Java heap space; the heap is full")
    stored = f"PythonException: {WORKER.format(cause=FULL)}"
    assert one_sentence(stored) == failure_text(PythonException(WORKER.format(cause=FULL)))
    assert one_sentence(one_sentence(stored)) == one_sentence(stored)
    assert one_sentence("policy.yaml:1: x\npolicy.yaml:2: y") == "policy.yaml:1: x\npolicy.yaml:2: y"


def test_a_memory_error_has_its_advice() -> None:
    assert failure_text(MemoryError()).startswith("MemoryError; memory ran out")


def test_a_named_cause_counts_and_what_was_handled_does_not() -> None:
    try:
        try:
            raise KeyError("handled")
        except KeyError:
            raise ValueError("raised") from OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/x")
    except ValueError as failure:
        assert failure_text(failure).startswith("OSError: [Errno 28] No space left on device: '/x'; free")
    try:
        try:
            raise KeyError("handled")
        except KeyError:
            raise ValueError("raised")  # noqa: B904 -- the case
    except ValueError as failure:
        assert failure_text(failure) == "ValueError: raised"


def test_a_jvm_that_has_ended_is_named() -> None:
    code = compile("raise ConnectionRefusedError(111, 'Connection refused')", "clientserver.py", "exec")
    with pytest.raises(ConnectionRefusedError) as raised:
        exec(code, {"__name__": "py4j.clientserver"})
    assert "Spark's JVM has ended" in failure_outcome(raised.value, "t")[1]
    assert "JVM" not in failure_text(ConnectionRefusedError(111, "Connection refused"))


def test_the_file_that_spark_was_reading_is_named_where_the_cause_does_not() -> None:
    text = (
        "[FAILED_READ_FILE] Encountered error while reading file file:///lake/t/part-1.parquet. SQLSTATE: KD001\n"
        "\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:1)\n"
        "Caused by: java.lang.IllegalArgumentException: bad footer\n\tat org.apache.Reader.read(Reader.java:1)\n"
    )
    assert cause_in(text) == "IllegalArgumentException: bad footer, while reading file:///lake/t/part-1.parquet"
    named = text.replace("bad footer", "file:/lake/t/part-1.parquet is not a Parquet file")
    assert cause_in(named) == "IllegalArgumentException: file:/lake/t/part-1.parquet is not a Parquet file"
