"""The sample tables -> a working copy of them, and the variables of a shell that works on it.

Run from the repository: `python -m samples.working_copy FOLDER` copies the tables to FOLDER/warehouse and writes
FOLDER/env, which a shell reads: `. FOLDER/env`.
"""

import shlex
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from samples.iceberg_places import place

ROOT = Path(__file__).parents[1]


def copy_tables(warehouse: Path, shown: Callable[[str], None] = lambda _: None) -> None:
    """Copy the tables of every format to `warehouse`, which must not be there. `shown` takes a line for each table."""
    samples = ROOT / "samples"
    tables = sorted(each for name in ("paimon", "delta") for each in (samples / name).glob("*.db/*"))
    left = len(tables) + len([*(samples / "iceberg").glob("*/*")])
    for each in tables:
        shown(f"copying {each.relative_to(samples)}, {left} tables left")
        shutil.copytree(each, warehouse / each.relative_to(samples))
        left -= 1
    shown(f"copying the Iceberg tables, {left} tables left")
    place(samples / "iceberg", warehouse / "iceberg")


def variables(folder: Path) -> dict[str, str]:
    """What a command needs of its environment to find the tables, their policy and their reports."""
    return {
        "NIGHTKEEP_POLICY": str(ROOT / "dags/tables.yaml"),
        "NIGHTKEEP_WAREHOUSE": str(folder / "warehouse"),
        "NIGHTKEEP_REPORTS": str(folder / "reports"),
        "PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{folder}/warehouse/iceberg/catalog.db",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "GX_ANALYTICS_ENABLED": "false",
    }


def script(folder: Path) -> str:
    """Lines of a shell that export the variables and put the environment's programs first."""
    exports = [f"export {name}={shlex.quote(value)}\n" for name, value in variables(folder).items()]
    return "".join([*exports, f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"\n'])


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    copy_tables(folder / "warehouse", partial(print, flush=True))
    (folder / "env").write_text(script(folder), encoding="utf-8")


if __name__ == "__main__":
    main()
