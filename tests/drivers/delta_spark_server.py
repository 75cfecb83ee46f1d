"""One JSON request per line -> Spark SQL with Delta's own jars -> one JSON reply per line. Knows no test."""

import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from tests.drivers.lake_rows import answer

Request = Mapping[str, Any]

_CONDITION = re.compile(r"\s*\[([A-Z0-9_.]+)\]")


def start(options: Mapping[str, Any]) -> SparkSession:
    """Options are {jars, scratch, memory, cores, java_options, conf}; the scratch folder is the working folder."""
    os.chdir(options["scratch"])
    places = f"-Djava.io.tmpdir={options['scratch']} -Dnightkeep.hold={options['scratch']}"
    conf = {
        "spark.driver.memory": options["memory"],
        # A class path, not spark.jars: those are copied and served over HTTP first.
        "spark.driver.extraClassPath": os.pathsep.join(options["jars"]),
        "spark.driver.extraJavaOptions": f"{places} -Duser.timezone=UTC {options['java_options']}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": options["scratch"],
        "spark.sql.warehouse.dir": f"{options['scratch']}/warehouse",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.delta.logStore.file.impl": "HoldingLogStore",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        # A vacuum lists with so many tasks, 10,000 by default, which take 40 s.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **options["conf"],
    }
    builder = SparkSession.builder.master(f"local[{options['cores']}]").appName("delta-spark")
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def sql(spark: SparkSession, request: Request) -> dict[str, Any]:
    """The rows of the last statement."""
    statements = request["statements"]
    for statement in statements[:-1]:
        spark.sql(statement).collect()
    return rows_in(spark.sql(statements[-1]))


def read(spark: SparkSession, request: Request) -> dict[str, Any]:
    return rows_in(_load(spark, request).selectExpr(*request["columns"]))


def find(spark: SparkSession, request: Request) -> dict[str, Any]:
    """The rows of each condition after its place among them, by one job: each is a scan of its own."""
    whole = _load(spark, request)
    found = [whole.where(each).selectExpr(f"{n} AS found_by", "*") for n, each in enumerate(request["conditions"])]
    return rows_in(reduce(DataFrame.unionAll, found))


def bytes_read(spark: SparkSession, request: Request) -> list[int]:
    """What each condition's scan of all columns reads of files, footers included, by the counters of Hadoop."""
    whole = _load(spark, request)
    counters = spark._jvm.org.apache.hadoop.fs.FileSystem.getGlobalStorageStatistics()  # type: ignore[union-attr]
    found = []
    # The first scan loads the table's state, which is read from memory afterwards.
    for condition in ("false", *request["conditions"]):
        before = counters.get("file").getLong("bytesRead")
        whole.where(condition).write.format("noop").mode("overwrite").save()
        found.append(counters.get("file").getLong("bytesRead") - before)
    return found[1:]


def cpu_seconds(spark: SparkSession, request: Request) -> float:
    """User and system time of the virtual machine so far, by /proc/PID/stat."""
    fields = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/stat").read_text().rpartition(")")[2].split()  # type: ignore[union-attr]
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def files(spark: SparkSession, request: Request) -> list[str]:
    """Spark answers file:/folder/p=a b%2F0/part-0.parquet: names on disk, not the encoded paths of the log."""
    start = f"file:{request['path']}/"
    return sorted(uri.removeprefix(start) for uri in _load(spark, request).inputFiles())


def write(spark: SparkSession, request: Request) -> None:
    source = request["source"]
    if "parquet" in source:
        frame = spark.read.parquet(source["parquet"])
    else:
        frame = spark.range(0, source["rows"], 1, request["files"] or 1).selectExpr(*source["select"])
    if "parquet" in source and request["files"]:
        frame = frame.coalesce(1) if request["files"] == 1 else frame.repartition(request["files"])
    writer = frame.write.format("delta").mode(request["mode"]).options(**request["options"])
    if request["partition_by"]:
        writer = writer.partitionBy(*request["partition_by"])
    writer.save(request["path"])


def set_conf(spark: SparkSession, request: Request) -> dict[str, str | None]:
    """The values before; null unsets."""
    before = {name: spark.conf.get(name, None) for name in request["conf"]}
    for name, value in request["conf"].items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
    return before


def checkpoint(spark: SparkSession, request: Request) -> None:
    _delta_log(spark).forTable(spark._jsparkSession, request["path"]).checkpoint()


def forget(spark: SparkSession, request: Request) -> None:
    _delta_log(spark).clearCache()


VERBS: dict[str, Callable[[SparkSession, Request], Any]] = {
    "bytes_read": bytes_read,
    "checkpoint": checkpoint,
    "cpu_seconds": cpu_seconds,
    "files": files,
    "find": find,
    "forget": forget,
    "read": read,
    "set": set_conf,
    "sql": sql,
    "write": write,
}


def main() -> None:
    serve(start, VERBS)


def serve(
    begin: Callable[[Mapping[str, Any]], SparkSession], verbs: Mapping[str, Callable[[SparkSession, Request], Any]]
) -> None:
    """Begins a session with the options of the command line and answers until there are no more requests."""
    # Java's own output goes where this process's descriptor 1 points: to the log, not among the replies.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    spark = begin(json.loads(sys.argv[1]))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"result": verbs[request["verb"]](spark, request)}
        except Exception as failure:  # noqa: BLE001 - the reply carries any failure to the caller
            reply = {"error": _describe(failure)}
        print(json.dumps(reply, allow_nan=False), file=replies, flush=True)
    spark.stop()


def rows_in(frame: DataFrame) -> dict[str, Any]:
    # Not toArrow: it insists that fields are not null which Delta declares so and leaves null.
    return answer(pa.Table.from_batches(frame._collect_as_arrow(empty_list_if_zero_records=False)))  # type: ignore[operator]


def _load(spark: SparkSession, request: Request) -> DataFrame:
    frame = spark.read.format("delta").options(**request["options"]).load(request["path"])
    return frame if request["where"] is None else frame.where(request["where"])


def _delta_log(spark: SparkSession) -> Any:
    return spark._jvm.org.apache.spark.sql.delta.DeltaLog  # type: ignore[union-attr]


def _describe(failure: Exception) -> dict[str, str]:
    """Java's exception types where Java failed."""
    chain = _java_chain(failure) or [(type(failure).__qualname__, str(failure))]
    # PySpark knows the condition of its own exception types only; every message of Spark's starts with it.
    condition = _CONDITION.match(chain[0][1])
    return {
        "class": chain[0][0],
        "message": chain[0][1],
        "root_class": chain[-1][0],
        "root_message": chain[-1][1],
        "condition": "" if condition is None else condition[1],
        "trace": "".join(traceback.format_exception(failure)),
    }


def _java_chain(failure: Exception) -> list[tuple[str, str]]:
    thrown = failure.java_exception if isinstance(failure, Py4JJavaError) else getattr(failure, "_origin", None)
    chain = []
    while thrown is not None:
        chain.append((thrown.getClass().getName(), str(thrown.getMessage())))
        thrown = thrown.getCause()
    return chain


if __name__ == "__main__":
    main()
