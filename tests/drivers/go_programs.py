"""Programs in the cache, built from their sources by Go if they are not there."""

import os
import subprocess
import tempfile
from pathlib import Path

from tests.drivers.toolchain import alone, cache_dir, program

_BUILD_SECONDS = 900


def go_program(module: str, version: str) -> Path:
    """The program of a module's version."""
    name = module.rpartition("/")[2]
    built = cache_dir() / "go" / f"{name}-{version}"
    with alone(name):
        if built.exists():
            return built
        built.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=built.parent) as scratch:
            _build(Path(scratch), f"{module}@{version}")
            Path(scratch, name).rename(built)
    return built


def _build(scratch: Path, source: str) -> None:
    places = {name: str(scratch / name.lower()) for name in ("GOPATH", "GOMODCACHE", "GOCACHE")}
    # A module cache that can be deleted, and no other Go than the one that is installed. Sums are checked as ever.
    settings = {"GOBIN": str(scratch), "GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    done = subprocess.run(
        [program("go", "golang-go"), "install", "-trimpath", "-ldflags=-s -w", source],
        env={**os.environ, **places, **settings},
        cwd=scratch,
        capture_output=True,
        text=True,
        timeout=_BUILD_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"Go could not build {source}:\n{(done.stdout + done.stderr)[-4000:]}")
