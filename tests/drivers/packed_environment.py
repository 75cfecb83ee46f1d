"""The wheel and the locked packages of its jobs -> an archive that any machine with the same Python unpacks and runs.

It has no jars of Spark: those are where Spark is. The interpreter is a link to that of this machine, and every node has
one at the same path, as venv-pack expects it too. Nothing else in it refers to the place where it was made.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.drivers.toolchain import alone, cache_dir
from tests.support.installed import ROOT, build_wheel, call

_LOCK = ROOT / "jobs" / "requirements.txt"
_PACKAGES = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


def pack_environment(folder: Path) -> Path:
    """An archive in `folder`: what the lock has, from the cache, and the wheel of this clone."""
    archive = folder / "environment.tar.gz"
    shutil.copyfile(_locked_packages(), archive)
    wheel = folder / "wheel"
    call(ROOT, "uv", "pip", "install", "-q", "--no-deps", "--target", str(wheel), str(build_wheel(folder)))
    # Members of gzip, one after the other, are one stream.
    with gzip.open(archive, "ab", compresslevel=1) as stream, tarfile.open(fileobj=stream, mode="w") as packed:
        packed.add(wheel, _PACKAGES)
    return archive


def _locked_packages() -> Path:
    """The beginning of an archive: compressing it takes longer than all the rest."""
    digest = hashlib.sha256(_LOCK.read_bytes() + sys.version.encode()).hexdigest()[:20]
    packages = cache_dir() / f"environment-{digest}.tar.gz"
    with alone("environment"):
        if not packages.exists():
            with tempfile.TemporaryDirectory(dir=cache_dir()) as scratch:
                begun = Path(scratch) / "begun.tar.gz"
                with gzip.open(begun, "wb", compresslevel=1) as stream:
                    # It is not closed, as that would write the end of an archive.
                    tarfile.TarFile(fileobj=stream, mode="w").add(_environment(Path(scratch)), ".", filter=_needed)
                begun.replace(packages)
    return packages


def _environment(folder: Path) -> Path:
    environment = folder / "environment"
    python = str(environment / "bin" / "python")
    call(folder, "uv", "venv", "-q", "--relocatable", "-p", sys.executable, str(environment))
    options = ("-q", "--no-deps", "--require-hashes", "-p", python)
    call(ROOT, "uv", "pip", "install", *options, "-r", str(_LOCK))
    shutil.rmtree(environment / _PACKAGES / "pyspark" / "jars")
    return environment


def _needed(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """A tenth of the files are packages' own tests, and headers of C."""
    inside = Path(member.name).parts[4:]
    return None if {"tests", "include"} & set(inside) else member
