"""A DAG that runs over the working copy -> a line for each table as its work begins and ends, and how many are left.

Run from the repository, in the environment that `samples.working_copy` writes:
`python -m samples.watched_dag DAG LOG`. What Airflow prints goes to LOG; its end is printed where the run fails.

A job stores the document of an operation before its work and after it: what is there is what was done.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nightkeep.discovery import last_found
from nightkeep.errors import CorruptMetadata
from nightkeep.policy import load_usable
from nightkeep.records import RunDocument, load_document
from nightkeep.records.failure_outcomes import UNFINISHED, UNREPORTED

_SECONDS = 1.0
_LAST_LINES = 60


@dataclass(slots=True)
class Watch:
    """What was printed: states by the names of documents. `tables`: how many the policy lists. Documents that were
    written before `since`, in seconds since 1970, are of earlier runs."""

    reports: Path
    prefix: str
    tables: int
    since: float = 0.0
    states: dict[str, str] = field(default_factory=dict)
    done: dict[str, bool] = field(default_factory=dict)

    def news(self) -> Iterator[str]:
        """A line for each document that is new, or another one by now."""
        written = {each: each.stat().st_mtime for each in self.reports.glob(f"*/{self.prefix}*.json")}
        for file in sorted((each for each, at in written.items() if at >= self.since), key=written.__getitem__):
            try:
                document = load_document(str(file))
            except (CorruptMetadata, OSError):
                continue
            state, name = _state(document), str(file)
            if self.states.get(name) == state:
                continue
            self.states[name] = state
            self.done[name] = state == document.outcome
            yield f"{document.table} {document.operation}: {state}; {self._left()}"

    def _left(self) -> str:
        finished = {Path(name).parent for name, ended in self.done.items() if ended}
        finished -= {Path(name).parent for name, ended in self.done.items() if not ended}
        # Tables that the policy does not list are found by the run's first task.
        whole = self.tables + len(last_found(str(self.reports), self.prefix).tables)
        left = max(0, whole - len(finished))
        return f"{left} table{'' if left == 1 else 's'} left"


def _state(document: RunDocument) -> str:
    reason = document.reason or ""
    if reason.startswith(UNFINISHED):
        return "at work"
    return "published, its check is to come" if reason.endswith(UNREPORTED) else str(document.outcome)


def watch_run(command: list[str], log: Path, watch: Watch) -> int:
    """Run the command, and print news until it ends. Returns its exit status."""
    with log.open("wb") as sink, subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT) as process:
        try:
            while process.poll() is None:
                time.sleep(_SECONDS)
                for line in watch.news():
                    print(line, flush=True)
        except KeyboardInterrupt:
            process.terminate()
            raise
    return process.returncode


def watch_of(dag: str, environ: Mapping[str, str]) -> Watch:
    """What to watch for a DAG over the tables of the environment."""
    tables = len(load_usable(environ["NIGHTKEEP_POLICY"]).tables)
    return Watch(Path(environ["NIGHTKEEP_REPORTS"]), f"{dag}-", tables, time.time())


def main() -> None:
    dag, log = sys.argv[1], Path(sys.argv[2])
    status = watch_run(["airflow", "dags", "test", dag], log, watch_of(dag, os.environ))
    if status:
        print("\n".join(log.read_text("utf-8", "replace").splitlines()[-_LAST_LINES:]))
    sys.exit(status)


if __name__ == "__main__":
    main()
