"""ORC files -> a DataFrame of every stored row, decoded by ORC's Java reader, which Spark has in its jars.

The rewrite and the gate decode by Arrow, whose reader is a work of its own in C++: a fault of one of the two shows as a
difference. Spark's own source of ORC files has no positions, moves dates before 1582, cuts times to microseconds and up
to Spark 4.1 fails at TIMESTAMP WITH LOCAL TIME ZONE. So a small class of Java asks the reader for the values. Spark's
compiler of generated code compiles it, once in each JVM, and executors get it as a jar.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

LABEL, ROW_INDEX = "nightkeep-file", "nightkeep-row"
"""No table should have columns of these names."""
_CLASS: Final = "nightkeep.OrcFileRows"
_SOURCE: Final = Path(__file__).with_name("OrcFileRows.java")
_FILES_OF_A_TASK: Final = 64
_COMPILING: Final = Lock()


def orc_rows(
    spark: SparkSession,
    files: Sequence[tuple[str, str]],
    columns: T.StructType,
    *,
    by_id: bool = False,
    names: Mapping[str, str] | None = None,
    required: Collection[str] = (),
) -> DataFrame:
    """Every row of `files`, given as (label, path): LABEL, ROW_INDEX and `columns`, all nullable.

    With `by_id`, a column is the one of a file whose attribute `iceberg.id` is the number after the first letter of its
    name; else the one of the name that `names` has for it, or without `names` of its own. So are fields of structs. A
    column that a file lacks is null; one of the `required` names is an error of the query, as is a type that does not
    hold the stored one. A LongType column takes times as nanoseconds. Timestamps are cut to microseconds, rounded down.
    """
    private: Any = spark
    context: Any = spark.sparkContext
    jvm, session = private._jvm, private._jsparkSession
    settings = jvm.org.apache.spark.util.SerializableConfiguration(session.sessionState().newHadoopConf())
    with _COMPILING:
        made = _compiled(jvm, context)
    read = made.newInstance(
        _objects(
            jvm,
            settings,
            session.parseDataType(columns.json()),
            by_id,
            None if names is None else jvm.java.util.HashMap(dict(names)),
            jvm.java.util.HashSet(list(required)),
        )
    )
    pairs = jvm.java.util.ArrayList()
    for pair in files:
        pairs.add(jvm.java.util.ArrayList(list(pair)))
    tasks = max(min(len(files), context.defaultParallelism), -(-len(files) // _FILES_OF_A_TASK), 1)
    rows = context._jsc.parallelize(pairs, tasks).flatMap(read)
    place = [T.StructField(LABEL, T.StringType()), T.StructField(ROW_INDEX, T.LongType())]
    schema = session.parseDataType(T.StructType([*place, *columns.fields]).json())
    return DataFrame(session.internalCreateDataFrame(rows.rdd(), schema, False), spark)  # noqa: FBT003


@lru_cache(maxsize=1)
def _compiled(jvm: Any, context: Any) -> Any:
    """The constructor of the class, which tasks of this context can load, too. Threads compile it once: tasks would
    find one of two jars."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(_SOURCE.read_text())
    jar = Path(mkdtemp(prefix="nightkeep-"), f"{_SOURCE.stem}.jar")
    for path in (jar.parent, jar):
        jvm.java.io.File(str(path)).deleteOnExit()
    with zipfile.ZipFile(jar, "w") as classes:
        for name, code in compiler.getBytecodes().items():
            classes.writestr(f"{name.replace('.', '/')}.class", bytes(code))
    context._jsc.addJar(str(jar))
    return compiler.getClassLoader().loadClass(_CLASS).getConstructors()[0]


def _objects(jvm: Any, *values: Any) -> Any:
    array = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName("java.lang.Object"), len(values))
    for place, value in enumerate(values):
        array[place] = value
    return array
