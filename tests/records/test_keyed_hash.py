"""The key of hashes: made once, for its owner alone, and the same for every process that has it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nightkeep.errors import EvidenceError
from nightkeep.records import keyed_hash as module
from nightkeep.records.keyed_hash import key_file, keyed_hash


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(module.VARIABLE)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_the_key_is_made_once_for_its_owner() -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(keyed_hash, [b"a"] * 32))) == 1
    assert key_file().stat().st_mode & 0o777 == 0o600
    assert [path.name for path in key_file().parent.iterdir()] == ["evidence-key"]
    assert keyed_hash(b"a") != keyed_hash(b"b")


def test_another_key_gives_another_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {keyed_hash(b"a")}
    for secret in ("one", "two" * 100):
        monkeypatch.setenv(module.VARIABLE, secret)
        found |= {keyed_hash(b"a"), keyed_hash(b"a")}
    assert len(found) == 3


def test_a_key_that_others_can_read_is_refused() -> None:
    keyed_hash(b"a")
    key_file().chmod(0o640)
    with pytest.raises(EvidenceError, match="mode 0600, found mode 0640"):
        keyed_hash(b"a")


@pytest.mark.parametrize("content", [b"", b"abc\n", b"\xff" * 64])
def test_a_damaged_key_is_refused(content: bytes) -> None:
    keyed_hash(b"a")
    key_file().write_bytes(content)
    with pytest.raises(EvidenceError, match="evidence-key"):
        keyed_hash(b"a")
