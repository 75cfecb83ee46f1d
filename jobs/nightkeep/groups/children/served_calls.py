"""The child's side of `child_process`: calls in, pickled answers out, until the parent closes the pipe or ends.

The child starts from `serve`. It imports this package and what a call needs. It never imports the parent's main module.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final, Generic, TypeVar

from nightkeep.causes import failure_text
from nightkeep.limits import confine_memory, out_of_memory
from nightkeep.model.version import __version__
from nightkeep.redaction import learnt, redacted_output
from nightkeep.silence import learn_silence, silent

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServedAnswer(Generic[T]):
    """The result or failure of one call. `secrets`: what the child has read, such as a catalog's settings. `silent`:
    the resources that did not answer it."""

    value: T
    failure: Exception | None
    trace: str
    secrets: frozenset[str]
    silent: Mapping[str, float]


def serve(descriptor: int, parent: int) -> None:
    """The main loop of the child. The first message is the version of this package, the others are answers."""
    _end_with(parent)
    _be_the_first_to_go()
    # What a library prints is no output of the parent's command.
    with suppress(OSError):
        os.dup2(2, 1)
    pipe = Connection(descriptor)
    with redacted_output(), suppress(EOFError, ConnectionResetError, BrokenPipeError):
        pipe.send_bytes(__version__.encode())
        while True:
            request = pipe.recv_bytes()
            pipe.send_bytes(_answered(request))


def _answered(request: bytes) -> bytes:
    """The pickled answer to a call. A result that cannot be pickled becomes a failure."""
    subject = "a table"
    try:
        work: Callable[[], object]
        subject, work, silent_before = pickle.loads(request)
        learn_silence(silent_before)
        confine_memory()
        return pickle.dumps(ServedAnswer(work(), None, "", learnt(), silent()))
    except MemoryError:
        failure: Exception = out_of_memory(subject)
    except Exception as raised:  # noqa: BLE001 -- the caller's to judge
        failure = raised
    trace = "".join(traceback.format_exception(failure))
    return pickle.dumps(ServedAnswer(None, _picklable(failure), trace, learnt(), silent()))


def _picklable(failure: Exception) -> Exception:
    """The failure itself, or an error with its text if the failure does not survive pickling."""
    try:
        pickle.loads(pickle.dumps(failure))
    except Exception:  # noqa: BLE001 -- libraries' own classes fail in any way
        return RuntimeError(failure_text(failure))
    return failure


def _end_with(parent: int) -> None:
    """Make the kernel end this process when its parent ends, however that happens. Linux only."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _be_the_first_to_go() -> None:
    """Make the kernel end this process first if memory runs out, not the driver or Spark."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("1000")


_PR_SET_PDEATHSIG: Final = 1
