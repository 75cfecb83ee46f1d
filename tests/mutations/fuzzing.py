"""Seeds -> mutations, each read in a process that may die, hang or take too much, and is begun anew then.

`python -m tests.mutations.fuzzing FORMAT SEED [COUNT]` from the repository reads mutations here, without a net.
"""

import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from tests.mutations.changes import changed
from tests.mutations.tables import NAMES, copied, metadata_files, read
from tests.support.processes import PROCESS

CPU_SECONDS = 10
"""Of one mutation, by its own clock: a machine may be slow."""
SILENT_SECONDS = 300
"""After so long without any progress a process waits for something that never comes."""
MEMORY_BYTES = 1 << 30
"""How much more than a process of these imports takes one may take for tables of a few hundred KB."""
ADDRESS_BYTES = 16 << 30
"""Of address space: pools reserve much of it. It keeps this machine alive; MEMORY_BYTES is what is measured."""


@dataclass(frozen=True)
class Mutation:
    """One changed file of one table."""

    table: str
    file: Path
    content: bytes


@dataclass(frozen=True)
class Failure:
    """What ended otherwise than in a result or a NightkeepError."""

    format: str
    seed: int
    kind: str
    found: str


class Bench:
    """Tables of a format below a folder, of which one file at a time is another."""

    def __init__(self, format: str, folder: Path) -> None:
        self.format = format
        self._tables = {}
        for name in NAMES[format]:
            (folder / name).mkdir()
            table = copied(format, name, folder / name)
            files = [(path, path.read_bytes()) for path in metadata_files(format, table)]
            self._tables[name] = (table, files)

    def mutation(self, seed: int) -> Mutation:
        random = Random(f"{self.format} {seed}")
        name = random.choice(list(self._tables))
        table, files = self._tables[name]
        path, content = random.choice(files)
        return Mutation(name, path, changed(content, str(path.relative_to(table)), random))

    def read(self, seed: int) -> list[str]:
        """The errors of a mutated table, which is whole again afterwards."""
        mutation = self.mutation(seed)
        before = mutation.file.read_bytes()
        mutation.file.write_bytes(mutation.content)
        try:
            return read(self.format, self._tables[mutation.table][0])
        finally:
            mutation.file.write_bytes(before)

    def unchanged(self) -> dict[str, list[str]]:
        """The errors of each table as it is."""
        return {name: read(self.format, table) for name, (table, _) in self._tables.items()}


def fuzz(format: str, first: int, count: int) -> tuple[int, list[Failure]]:
    """Mutations of seeds from `first` on: how many were refused, and what failed."""
    refused, failures, seed = 0, [], first
    while seed < first + count:
        with tempfile.TemporaryDirectory(prefix="nightkeep-mutations-") as folder:
            told, failure = _worked(format, Path(folder), seed, first + count - seed)
        refused += told
        if failure is None:
            break
        failures.append(failure)
        seed = failure.seed + 1
    return refused, failures


def _worked(format: str, folder: Path, first: int, count: int) -> tuple[int, Failure | None]:
    """One process, until its first failure."""
    progress = folder / "progress"
    progress.write_text(f"{first} 0")
    (folder / "tables").mkdir()
    ours, theirs = PROCESS.Pipe()
    process = PROCESS.Process(target=_work, args=(theirs, format, str(folder), first, count))
    process.start()
    theirs.close()
    try:
        found = _heard(ours, progress)
    finally:
        process.join(5)
        process.kill()
        process.join()
        ours.close()
    seed, refused = map(int, progress.read_text().split())
    if found == "done":
        return refused, None
    if found is None:
        code = process.exitcode
        kind = "hang" if code in (-signal.SIGPROF, -signal.SIGKILL) else "death"
        return refused, Failure(format, seed, kind, f"exit status {code}")
    return refused, Failure(format, seed, *found)


def _heard(pipe: Connection, progress: Path) -> object:
    """The process's last word; None where it died, or was silent for too long."""
    before = ""
    while True:
        if pipe.poll(SILENT_SECONDS):
            try:
                return pipe.recv()
            except EOFError:
                return None
        now = progress.read_text()
        if now == before:
            return None
        before = now


def _work(pipe: Connection, format: str, folder: str, first: int, count: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Its default action ends the process, whatever code of C it is in.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    bench = Bench(format, Path(folder, "tables"))
    bench.unchanged()
    base, refused = _peak(), 0
    progress = os.open(Path(folder, "progress"), os.O_WRONLY)
    for seed in range(first, first + count):
        os.pwrite(progress, f"{seed} {refused:<12}".encode(), 0)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        try:
            refused += bool(bench.read(seed))
        except Exception:  # noqa: BLE001 - whatever it is, it is a finding
            pipe.send(("traceback", traceback.format_exc()))
            return
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if _peak() - base > MEMORY_BYTES:
            pipe.send(("memory", f"{_peak() - base} bytes more than before"))
            return
    os.pwrite(progress, f"{first + count} {refused:<12}".encode(), 0)
    pipe.send("done")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    format, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    folder = Path(tempfile.mkdtemp(prefix="nightkeep-mutations-"))
    bench = Bench(format, folder)
    for seed in range(first, first + count):
        mutation = bench.mutation(seed)
        print(seed, mutation.table, mutation.file.relative_to(folder))
        for error in bench.read(seed):
            print("   ", error)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
