"""An exception -> one sentence: the innermost cause, and what to do about it where that is known.

Spark reports a failure of a worker as text: pages that begin with what it was doing, and name the cause below, by
Python's order (the cause first) within Java's (the cause last).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final


def failure_text(failure: BaseException, most: int = 1000) -> str:
    """The sentence, of at most `most` characters. It begins with the type of the cause."""
    *_, inner = _chain(failure)
    whole = "\n".join(str(each) for each in _chain(failure))
    return _advised(f"{type(inner).__name__}: {inner}", whole, most, _NO_JVM if _asks_the_jvm(failure) else None)


def cause_in(text: str, most: int = 1000) -> str:
    """As `failure_text`, of a failure of which only the text is there: a stored one, or one of another process."""
    return _advised(text, text, most, None)


def one_sentence(text: str) -> str:
    """A stored reason, in place of the stacks that earlier releases stored with it."""
    return cause_in(text) if _TRACEBACK in text or _AT_FRAME.search(text) else text


def _advised(text: str, whole: str, most: int, otherwise: str | None) -> str:
    cause = _with_file(_cause_in(text), whole)
    shown = cause if len(cause) <= most else f"{cause[:most]} ..."
    known = advice_on(f"{cause}\n{whole}") or otherwise
    return shown if known is None else f"{shown}; {known}"


def _with_file(cause: str, whole: str) -> str:
    """The cause, and the file that Spark was reading if the cause does not name it."""
    read = _READING.search(whole)
    named = None if read is None else read[1].rstrip(".,;:")
    return cause if named is None or named.rpartition("/")[2] in cause else f"{cause}, while reading {named}"


def advice_on(text: str) -> str | None:
    """What to do about the cause that a text names; None if that is not known."""
    return next((advice for pattern, advice in _ADVICE.items() if pattern.search(text)), None)


def _chain(failure: BaseException) -> Iterator[BaseException]:
    """The failure, and what its raisers name as its cause. What was merely handled meanwhile is no cause."""
    seen, each = set[int](), failure
    while id(each) not in seen:
        seen.add(id(each))
        yield each
        # An OSError without a number is a sentence of ours about what a client raised, with what to do.
        if isinstance(each, OSError) and each.errno is None and type(each).__module__ == "builtins":
            return
        # A traceback from another process is kept as a cause, and repeats what the failure states.
        if isinstance(each.__cause__, BaseException) and _TRACEBACK not in str(each.__cause__)[:100]:
            each = each.__cause__


def _cause_in(text: str) -> str:
    """The cause that a text of Spark, Java or Python names; the text itself in one line if it names none."""
    causes = text.split(_CAUSED_BY)
    # A cause without a message, such as an EOFException, states less than what it made fail.
    while len(causes) > 1 and ": " not in _AT_FRAME.split(causes[-1])[0]:
        causes.pop()
    java = causes[-1]
    # A cause of Python that Java wraps may be named above the last cause of Java.
    python = next((each for each in reversed(causes) if _TRACEBACK in each), None)
    if python is not None:
        return _cause_in_python(python)
    first = _AT_FRAME.split(java)[0]
    named = _FAILED_TASK.split(first)[-1] if len(causes) == 1 else first
    return _one_line(_PACKAGE.sub("", _JAVA_CALL.sub("", named).strip()))


def _cause_in_python(text: str) -> str:
    """The last line of the cause's traceback. In a chain of causes, the first traceback is the cause."""
    last = text.split(_DURING)[-1] if _DURING in text else text
    block = last.split(_DIRECTLY)[0].rpartition(_TRACEBACK)[2]
    lines = iter(block.splitlines()[1:])
    end = next((line for line in lines if line.strip() and not line[0].isspace()), "")
    more = []
    for line in lines:
        if not line.strip() or _AFTER.match(line):
            break
        more.append(line)
    return _one_line(_PACKAGE.sub("", " ".join([end, *more]))) or _one_line(text)


def _one_line(text: str) -> str:
    return " ".join(text.split()).removesuffix(":")


def _asks_the_jvm(failure: BaseException) -> bool:
    """Whether a connection failed that py4j had to Spark's JVM."""
    if not isinstance(failure, ConnectionError | EOFError) and not type(failure).__name__.startswith("Py4JNetwork"):
        return False
    if type(failure).__module__.startswith("py4j"):
        return True
    trace = failure.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").startswith("py4j"):
            return True
        trace = trace.tb_next
    return False


_TRACEBACK: Final = "Traceback (most recent call last):"
_DIRECTLY: Final = "The above exception was the direct cause of the following exception:"
_DURING: Final = "During handling of the above exception, another exception occurred:"
_CAUSED_BY: Final = "\nCaused by: "
_AT_FRAME: Final = re.compile(
    r"\n\s+at |\nDriver stacktrace:|\n\t\.\.\. \d+ more|\nThis stopped SparkContext was created at:"
)
_AFTER: Final = re.compile(r"\s+at |Driver stacktrace|JVM stacktrace|Caused by: ")
_FAILED_TASK: Final = re.compile(r"most recent failure: (?:Lost task [^:\n]*: )?|Reason: (?=\S)")
_JAVA_CALL: Final = re.compile(r"^(?:\w+: )?An error occurred while calling [^\n]*\n: ")
_PACKAGE: Final = re.compile(r"^(?:[a-z_][\w]*\.)+(?=[A-Z])")
_NO_JVM: Final = (
    "Spark's JVM has ended, most often for want of memory: see its log, give it more (spark.driver.memory), or lower "
    "task_memory"
)
_READING: Final = re.compile(r"(?:while|[Ee]rror) reading file:? (\S+)")
_ADVICE: Final[Mapping[re.Pattern[str], str]] = {
    re.compile(pattern): advice
    for pattern, advice in {
        r"No space left on device|\bENOSPC\b": "free space there, or name another folder, then run again",
        r"Disk quota exceeded": "raise the quota, or free space there, then run again",
        r"Read-only file system": "mount it for writing, or name another folder",
        r"Permission denied": "let the user of this process write there, or name another folder",
        r"File too large": "raise the limit of file sizes (ulimit -f), or name another folder",
        r"Too many open files": "raise the limit of open files (ulimit -n)",
        r"JAVA_GATEWAY_EXITED|Java gateway process exited": "install Java 17, and name it in JAVA_HOME",
        r"UnsupportedClassVersionError|class file version": "run Spark on Java 17: name it in JAVA_HOME",
        r"All masters are unresponsive|Spark context stopped while waiting for backend|"
        r"[Ff]ailed to connect to master": ("start the master that spark.master names, or name another one"),
        r"on a stopped SparkContext|SparkContext (?:was|has been) shut ?down|SparkContext is stopped": (
            "Spark has ended the session, as it does if the master of spark.master does not answer: see its "
            "log, start that master, then run again"
        ),
        r"OutOfMemoryError: (?:Java heap space|GC overhead)|OutOfMemoryError: Requested array size": (
            "the heap is full: raise spark.executor.memory, or spark.driver.memory of a local master"
        ),
        r"OutOfMemoryError|unable to create native thread": (
            "memory beside the heap is full: raise spark.executor.memoryOverhead, or task_memory of the policy"
        ),
        r"[Kk]illed by YARN for exceeding|exceeding (?:physical |virtual )?memory limits|OOMKilled|memoryOverhead": (
            "raise spark.executor.memoryOverhead, or task_memory of the policy"
        ),
        r"(?:code|status):? 137\b|[Ee]xit(?:ed)? 137\b|SIGKILL": (
            "it was killed, most often by the kernel for want of memory: raise spark.executor.memoryOverhead "
            "or spark.executor.memory, or run fewer tasks at once (spark.executor.cores)"
        ),
        r"Python worker exited unexpectedly|Python worker (?:crashed|process terminated)": (
            "a worker ended, most often for want of memory: raise spark.executor.memoryOverhead, or lower task_memory"
        ),
        r"ExecutorLostFailure|[Ll]ost executor|executor (?:\S+ )?lost": (
            "an executor is lost: see its log, give it more memory (spark.executor.memoryOverhead), then run again"
        ),
        r"^MemoryError|ArrowMemoryError|malloc of size \d+ failed": (
            "memory ran out: give the process more, or lower task_memory of the policy"
        ),
    }.items()
}
"""What to do about causes of the machine and of Spark, in the order in which they are looked for."""
