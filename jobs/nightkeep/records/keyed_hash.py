"""Bytes -> a hash by a key that stays with the deployment, so that documents distinguish rows without their values.

Without the key nobody can try values until a hash agrees. The key is made from the variable below or else from a file
outside the reports folder, as reports are shown to people who may not read the tables.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from nightkeep.errors import EvidenceError

VARIABLE: Final = "NIGHTKEEP_EVIDENCE_SECRET"
"""Any text. Processes on several machines need the same one for equal hashes."""
_DIGITS: Final = 64
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def keyed_hash(value: bytes) -> str:
    """32 hexadecimal digits. Raises EvidenceError without a usable key."""
    return hashlib.blake2b(value, key=_key(), digest_size=16).hexdigest()


def key_file() -> Path:
    """The file with the key of this account, which is made on first use."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(state) / "nightkeep" / "evidence-key"


def _key() -> bytes:
    given = os.environ.get(VARIABLE)
    return hashlib.sha512((given or _kept()).encode("utf-8", "surrogatepass")).digest()


def _kept() -> str:
    path = key_file()
    try:
        if not path.exists():
            _make(path)
        held, mode = path.read_text(encoding="ascii").strip(), path.stat().st_mode
    except (OSError, UnicodeDecodeError) as failure:
        why = failure.strerror if isinstance(failure, OSError) else "other bytes than digits"
        raise EvidenceError(str(path), f"a key that can be made and read, or {VARIABLE}", str(why)) from failure
    if mode & _OTHERS:
        raise EvidenceError(str(path), "a key that its owner alone can read, mode 0600", f"mode {mode & 0o777:04o}")
    if len(held) < _DIGITS:
        raise EvidenceError(str(path), f"{_DIGITS} digits", f"{len(held)} characters")
    return held


def _make(path: Path) -> None:
    """Make the file whole: a link never replaces the key that another process made at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as sink:
            sink.write(secrets.token_hex(_DIGITS // 2) + "\n")
            sink.flush()
            os.fsync(sink.fileno())
        with suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink()
