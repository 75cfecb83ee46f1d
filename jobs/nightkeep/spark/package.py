"""The package's own files -> Spark's workers: by path on this machine, as a zip on others."""

from __future__ import annotations

import io
import site
import zipfile
from pathlib import Path

from pyspark.sql import SparkSession


def package_path() -> dict[str, str]:
    """The setting by which workers on this machine find the package; empty if their interpreter finds it anyway."""
    parent = str(_package().parent)
    if parent in site.getsitepackages():
        return {}
    return {"spark.executorEnv.PYTHONPATH": parent}


def ship_package(spark: SparkSession, folder: str) -> None:
    """Send the package to executors. Its file in `folder` must last as long as the session."""
    archive = Path(folder, "nightkeep.zip")
    archive.write_bytes(package_zip())
    spark.sparkContext.addPyFile(str(archive))


def package_zip() -> bytes:
    """The package as an importable zip of its sources."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(_package().rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(_package().parent))
    return buffer.getvalue()


def _package() -> Path:
    return Path(__file__).parents[1]
