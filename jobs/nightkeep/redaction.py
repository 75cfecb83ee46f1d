"""Text that leaves the process -> the same text without credentials. Only this module decides what is secret.

Three things are removed: user info of URIs, values of keys that name secrets, and values that this process received as
secrets from its environment or a catalog's settings, in any text of any library.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from types import TracebackType
from typing import Any, Final, TextIO, TypeVar, cast
from urllib.parse import unquote

T = TypeVar("T")

HIDDEN: Final = "***"
"""The text in place of a secret."""


def redact(text: str) -> str:
    """The text without secrets. Paths, partitions and names are kept. Redacting twice changes nothing more."""
    return _without(text, _known_now())


def _known_now() -> tuple[str, ...]:
    return _known(_of_environment(tuple(os.environ.items())), frozenset(_LEARNT))


def _without(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    # Everything that the expressions match contains one of these.
    if not ("=" in text or ":" in text or "@" in text):
        return text
    text = _STORE_INFO.sub(rf"\1{HIDDEN}@", text)
    text = _KEY_INFO.sub(rf"\1{HIDDEN}@", _USER_INFO.sub(rf"\1{HIDDEN}@", text))
    text = _STRONG.sub(rf"\1{HIDDEN}", text)
    text = _QUERY.sub(rf"\1{HIDDEN}", text)
    text = _QUOTED.sub(rf"\1{HIDDEN}\3", text)
    return _BEARER.sub(rf"\1{HIDDEN}", text)


def redacted(value: T) -> T:
    """A JSON value with each text redacted, and with texts under keys that name secrets hidden. Names that identify a
    document (partitions, paths, tables) are kept."""
    return _hidden(value, _known_now())  # type: ignore[no-any-return]


def learn(settings: Mapping[str, object]) -> None:
    """Remember the secrets among settings, such as a catalog's. From now on they are removed from every text."""
    _LEARNT.update(_secrets(settings))


def learnt() -> frozenset[str]:
    """The secrets that `learn` found in this process."""
    return frozenset(_LEARNT)


def remember(secrets: Iterable[str]) -> None:
    """Remember secrets that another process of this run has learnt."""
    _LEARNT.update(secrets)


@contextmanager
def redacted_output() -> Iterator[None]:
    """In the `with` block, redact everything that this process prints: also logs of handlers that are created in it,
    and a traceback that ends the process."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, _Redacting(stream)) for stream in before)
    sys.excepthook = _print_traceback
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class _Redacting:
    """A text stream that redacts what is written, and passes everything else to another stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(redact(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def _print_traceback(kind: type[BaseException], failure: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(redact("".join(traceback.format_exception(kind, failure, trace))))


_LEARNT: Final[set[str]] = set()
_IDENTITIES: Final = frozenset({"partition", "path", "table", "run_id", "unit", "name", "bucket"})

_WORDS: Final = (
    r"(?:pass(?:word|wd|phrase)|pwd|secret|token|credentials?|(?:access|account|api|private|shared|signing|fernet)[-_.]?key"
    r"|sas|signature|sig|authorization)"
)
# The group is atomic and ends where the name ends: to try each of many words anew takes the square of a name's length.
_NAMES: Final = rf"(?>(?:[A-Za-z0-9_.-]*[-_.])?{_WORDS}(?![A-Za-z0-9])(?:[-_.][A-Za-z0-9_.-]*)?)"
_SECRET_NAME: Final = re.compile(_NAMES, re.IGNORECASE)
_PLAIN_NAME: Final = re.compile(r".*(?:endpoint|provider|class|enabled|type|uri|url|expir|duration|ttl|file)$", re.I)
"""Settings about secrets that are not secret themselves: `token-refresh-enabled`, `credentials.provider`."""

_STORE_INFO: Final = re.compile(r"""\b((?:s3[an]?|gs|https?)://)(?![^\s"'<>/@]*/)[^\s"'<>/@]+@""")
# The last character of a scheme stands for it: to look for the first one takes time by the square of a long word.
_USER_INFO: Final = re.compile(r"""([A-Za-z0-9+.-]://(?:[^\s"'<>/:@?#]*:))(?!\d*(?:[/?#\s"']|$))[^\s"'<>]*@""")
_KEY_INFO: Final = re.compile(r"(\b(?:s3[an]?|gs|https?)://)[^\s/@:]*:\*\*\*@")
_VALUE: Final = r"""(?:"[^"\n]*"|'[^'\n]*'|[^\s"'&;,<>)}\]]+)"""
_STRONG: Final = re.compile(
    # A name may come before, with `-`, `_` or `.` between. To match it, too, would take the square of its length.
    r"(?<![A-Za-z0-9/])("
    r"(?:pass(?:word|wd|phrase)|secret[-_.]?(?:access[-_.]?)?key|client[-_.]?secret|access[-_.]?key(?:[-_.]?id)?"
    r"|account[-_.]?key|session[-_.]?token|api[-_.]?key|private[-_.]?key)\s*=\s*)(?!\*\*\*)" + _VALUE,
    re.IGNORECASE,
)
_QUERY: Final = re.compile(rf"([?&;]{_NAMES}=)(?!\*\*\*)[^&;\s\"'<>)]*", re.IGNORECASE)
_QUOTED: Final = re.compile(rf"""((["']){_NAMES}\2\s*[:=]\s*["'])(?!\*\*\*)[^"'\n]*(["'])""", re.IGNORECASE)
_BEARER: Final = re.compile(r"(\b(?:Bearer|Basic)\s+)(?!\*\*\*)[A-Za-z0-9._~+/=-]{8,}")
_LEAST: Final = 6
"""The least length of a remembered secret. Shorter values may be words of any sentence."""


def _hidden(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        # Keep the type of an enum.
        text = _without(value, secrets)
        return value if text == value else text
    if isinstance(value, Mapping):
        return {key: _entry(str(key), entry, secrets) for key, entry in value.items()}
    return [_hidden(entry, secrets) for entry in value] if isinstance(value, list | tuple) else value


def _entry(key: str, value: object, secrets: tuple[str, ...]) -> object:
    if not isinstance(value, str):
        return _hidden(value, secrets)
    if key in _IDENTITIES:
        return _STORE_INFO.sub(rf"\1{HIDDEN}@", _USER_INFO.sub(rf"\1{HIDDEN}@", value))
    return HIDDEN if _names_secret(key) else _hidden(value, secrets)


@lru_cache(maxsize=4096)
def _names_secret(name: str) -> bool:
    return _SECRET_NAME.fullmatch(name) is not None and _PLAIN_NAME.match(name) is None


def _secrets(settings: Mapping[str, object]) -> Iterator[str]:
    """Values of settings that name secrets, and passwords of URIs in any."""
    for name, value in settings.items():
        if not isinstance(value, str) or len(value) < _LEAST:
            continue
        if _names_secret(name.replace("__", ".")):
            yield value
        elif "://" in value and (match := _PASSWORD.search(value)):
            yield from {match[1], unquote(match[1])}


def is_secret(name: str, value: str) -> bool:
    """Whether a variable or a setting of this name and value is a secret, or has one in it."""
    return _names_secret(name.replace("__", ".")) or any(_secrets({name: value}))


_PASSWORD: Final = re.compile(r"://[^\s/:@?#]*:(?!\d*(?:/|$))(\S+)@")


@lru_cache(maxsize=8)
def _of_environment(variables: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return tuple(sorted(_secrets(dict(variables))))


@lru_cache(maxsize=8)
def _known(environment: tuple[str, ...], learnt: frozenset[str]) -> tuple[str, ...]:
    """All known secrets, longest first, as one may contain another. A path is never a secret, whatever its variable's
    name."""
    secrets = {secret for secret in (*environment, *learnt) if len(secret) >= _LEAST and not secret.startswith("/")}
    return tuple(sorted(secrets, key=lambda secret: (-len(secret), secret)))
