"""One JSON request per line -> Spark SQL with Iceberg's own jar -> one JSON reply per line. Knows no test."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession
from tests.drivers.delta_spark_server import Request, rows_in, serve, set_conf, sql


def start(options: Mapping[str, Any]) -> SparkSession:
    """Options are {jars, scratch, memory, cores, java_options, conf}; the scratch folder is the working folder."""
    os.chdir(options["scratch"])
    conf = {
        "spark.driver.memory": options["memory"],
        # A class path, not spark.jars: those are copied and served over HTTP first.
        "spark.driver.extraClassPath": os.pathsep.join(options["jars"]),
        "spark.driver.extraJavaOptions": (
            f"-Djava.io.tmpdir={options['scratch']} -Duser.timezone=UTC {options['java_options']}"
        ),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": options["scratch"],
        "spark.sql.warehouse.dir": f"{options['scratch']}/warehouse",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **options["conf"],
    }
    builder = SparkSession.builder.master(f"local[{options['cores']}]").appName("iceberg-spark")
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def read(spark: SparkSession, request: Request) -> dict[str, Any]:
    frame = spark.read.format("iceberg").options(**request["options"]).load(request["table"])
    if request["where"] is not None:
        frame = frame.where(request["where"])
    return rows_in(frame.selectExpr(*request["columns"]))


def stream(spark: SparkSession, request: Request) -> dict[str, Any]:
    """All rows of the sink, after one run up to the newest snapshot."""
    source = spark.readStream.format("iceberg").options(**request["options"]).load(request["table"])
    writer = source.writeStream.format("parquet").option("checkpointLocation", f"{request['sink']}.checkpoint")
    writer.trigger(availableNow=True).start(request["sink"]).awaitTermination()
    return rows_in(spark.read.parquet(request["sink"]))


def planned(spark: SparkSession, request: Request) -> list[list[Any]]:
    """Name and expected distinct values of each column of the tables of a query that has them, by the optimizer."""
    plan = spark.sql(request["query"])._jdf.queryExecution().optimizedPlan()
    leaves, found = plan.collectLeaves(), []
    for place in range(leaves.size()):
        columns = leaves.apply(place).stats().attributeStats().toSeq()
        for number in range(columns.size()):
            column, distinct = columns.apply(number)._1(), columns.apply(number)._2().distinctCount()
            if distinct.isDefined():
                found.append([column.name(), int(distinct.get())])
    return sorted(found)


VERBS: dict[str, Callable[[SparkSession, Request], Any]] = {
    "planned": planned,
    "read": read,
    "set": set_conf,
    "sql": sql,
    "stream": stream,
}


if __name__ == "__main__":
    serve(start, VERBS)
