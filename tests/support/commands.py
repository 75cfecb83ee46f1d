"""The command called in this process, and how it ended."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from nightkeep.commands.app import main


@dataclass(frozen=True, slots=True)
class Said:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def said(capture: pytest.CaptureFixture[str], *arguments: str) -> Said:
    """What the command says of the arguments; it must end with a status."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capture.readouterr()
    assert isinstance(ended.value.code, int)
    return Said(ended.value.code, out, err)
