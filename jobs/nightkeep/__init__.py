"""Nightly maintenance of lakehouse tables: plan, rewrite, prove, publish, check, report.

There is a function for each command. It takes an address or a table name of the policy, and the options of the command
under the same names. It returns what the command prints for `--json`, as frozen objects. A function's modules are
imported when the function is first accessed.
"""

import importlib
from typing import TYPE_CHECKING, Final

from nightkeep.model.version import __version__

if TYPE_CHECKING:
    from nightkeep.api.advice import advise
    from nightkeep.api.audits import audit
    from nightkeep.api.checks import check, diff
    from nightkeep.api.data_source import DataSource
    from nightkeep.api.doctor import doctor
    from nightkeep.api.files import expire, restore, sweep
    from nightkeep.api.metrics import metrics
    from nightkeep.api.night import night
    from nightkeep.api.reading import read, read_plan
    from nightkeep.api.runs import delete, plan, run, sql, update
    from nightkeep.api.status import status
    from nightkeep.api.stored import explain, history, release, report
    from nightkeep.api.tables import tables, validate

__all__ = [
    "DataSource",
    "__version__",
    "advise",
    "audit",
    "check",
    "delete",
    "diff",
    "doctor",
    "expire",
    "explain",
    "history",
    "metrics",
    "night",
    "plan",
    "read",
    "read_plan",
    "release",
    "report",
    "restore",
    "run",
    "sql",
    "status",
    "sweep",
    "tables",
    "update",
    "validate",
]

_MODULES: Final = {
    "DataSource": "data_source",
    "advise": "advice",
    "audit": "audits",
    "check": "checks",
    "delete": "runs",
    "diff": "checks",
    "doctor": "doctor",
    "expire": "files",
    "explain": "stored",
    "history": "stored",
    "metrics": "metrics",
    "night": "night",
    "plan": "runs",
    "read": "reading",
    "read_plan": "reading",
    "release": "stored",
    "report": "stored",
    "restore": "files",
    "run": "runs",
    "sql": "runs",
    "status": "status",
    "sweep": "files",
    "tables": "tables",
    "update": "runs",
    "validate": "tables",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return getattr(importlib.import_module(f"nightkeep.api.{_MODULES[name]}"), name)
        except ModuleNotFoundError as failure:
            # The Python data source of Spark 4 is the only function whose module is made of pyspark's classes.
            from nightkeep.extras import missing_module  # noqa: PLC0415 -- no module of the package shares it

            raise missing_module(f"nightkeep.{name}", failure) from failure


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
