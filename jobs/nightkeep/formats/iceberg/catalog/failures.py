"""A catalog's failure -> one sentence of ours: which catalog was asked, at which address, what came back, what to set.

AddressError is for a setting to correct, Unreachable for a catalog that may answer later. Messages of libraries are
pages long (SQL queries, retries of a connection, links to a manual) and hide the reason at their end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    CommitStateUnknownException,
    ForbiddenError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    NotInstalledError,
    OAuthError,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
)
from pyiceberg.utils.config import Config
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from nightkeep.errors import AddressError, NightkeepError, Unreachable
from nightkeep.metastores.settings import settings_of

SILENT: Final = (CommitStateUnknownException, ServerError, ServiceUnavailableError, TooManyRequestsError, OSError)
"""Failures of server, proxy or connection after which the outcome of a request is unknown."""
_NO_TABLE: Final = (NoSuchTableError, NoSuchNamespaceError)
_DENIED: Final = (UnauthorizedError, ForbiddenError, OAuthError, AuthorizationExpiredError)
_MISCONFIGURED: Final = (
    ValueError,
    NoSuchPropertyException,
    NotInstalledError,
    ImportError,
    ArgumentError,
    NoSuchModuleError,
)


@contextmanager
def connecting(catalog: str) -> Iterator[None]:
    """Turn failures to open a catalog by its settings into AddressError or Unreachable."""
    try:
        with asking(f"catalog {catalog}", catalog):
            yield
    except (NotInstalledError, ImportError) as failure:
        extra = _extra(catalog)
        raise AddressError(
            f"catalog {catalog}: expected the packages of its client, found {_first_line(failure)}; install {extra}"
        ) from failure
    except _MISCONFIGURED as failure:
        raise AddressError(f"catalog {catalog}: expected settings that pyiceberg takes, found {failure}") from failure


@contextmanager
def asking(subject: str, catalog: str, near: Callable[[], str] = lambda: "") -> Iterator[None]:
    """Turn a catalog's failures into AddressError or Unreachable. `connecting` names settings that do not parse.

    `near`: the end of the message where there is no such table."""
    try:
        yield
    except _NO_TABLE as failure:
        raise AddressError(f"{subject}: expected a table, found {failure}{near()}") from failure
    except _DENIED as failure:
        raise _denied(subject, catalog, _first_line(failure), ("credential or token", "CREDENTIAL")) from failure
    except SILENT as failure:
        raise _unreachable(subject, catalog, failure) from failure
    except RESTError as failure:
        raise AddressError(f"{subject}: expected access to the catalog, found {_first_line(failure)}") from failure
    except (ArgumentError, NoSuchModuleError):
        raise
    except SQLAlchemyError as failure:
        raise _of_database(subject, catalog, failure) from failure


def _of_database(subject: str, catalog: str, failure: SQLAlchemyError) -> NightkeepError:
    text = _first_line(failure)
    if refused := _REFUSED.search(text):
        return _denied(subject, catalog, refused[0], ("user and password in uri", "URI"))
    if "no such table" in text or "does not exist" in text:
        expected = f"a database with Iceberg's tables at {_address(catalog)}"
        return AddressError(f"{subject}: expected {expected}, found {text}; set {_places(catalog, _URI)}")
    return _unreachable(subject, catalog, failure)


def _denied(subject: str, catalog: str, found: str, setting: tuple[str, str]) -> AddressError:
    return AddressError(
        f"{subject}: expected access to {_address(catalog)}, found {found}; set {_places(catalog, setting)}"
    )


def _unreachable(subject: str, catalog: str, failure: Exception) -> Unreachable:
    advice = f"start it, or set {_places(catalog, _URI)}"
    return Unreachable(subject, f"an answer of {_address(catalog)}", f"{reason(failure)}; {advice}")


def reason(failure: BaseException) -> str:
    """Why a request failed: in plain words for a failure of the network, else the first line of the first message."""
    text = "\n".join(str(each) for each in _chain(failure))
    for plain, pattern in _PLAIN.items():
        if pattern.search(text):
            return plain
    return _first_line(failure)


def _chain(failure: BaseException) -> Iterator[BaseException]:
    """The failure and those that it wraps, each library in its own way."""
    pending, seen = [failure], set[int]()
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        wrapped = (each.__cause__, each.__context__, getattr(each, "reason", None), getattr(each, "inner", None))
        pending += [inner for inner in (*wrapped, *each.args) if isinstance(inner, BaseException)]


def _first_line(failure: BaseException) -> str:
    inner = failure.orig if isinstance(failure, DBAPIError) and failure.orig is not None else failure
    first = str(inner).strip().partition("\n")[0]
    text = f"{type(inner).__name__}: {first}" if type(inner).__name__ not in first else first
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _address(catalog: str) -> str:
    settings = _settings(catalog)
    return str(settings.get("uri") or settings.get("glue.endpoint") or f"catalog {catalog}")


def _places(catalog: str, setting: tuple[str, str]) -> str:
    """Where a setting is, by its names in pyiceberg's file and in the environment."""
    name, variable = setting
    if "://" in catalog:
        return f"{name} of a catalog in .pyiceberg.yaml that asks {catalog}"
    return f"{name} of {catalog} in .pyiceberg.yaml, or PYICEBERG_CATALOG__{catalog.upper()}__{variable}"


def _extra(catalog: str) -> str:
    settings = _settings(catalog)
    kind, scheme = str(settings.get("type", "")), str(settings.get("uri", "")).partition(":")[0]
    return next((extra for word, extra in _EXTRAS.items() if word in (kind, scheme.partition("+")[0])), "them")


def _settings(catalog: str) -> Mapping[str, object]:
    return settings_of(catalog) if "://" in catalog else Config().get_catalog_config(catalog) or {}


_SHOWN: Final = 200
_URI: Final = ("uri", "URI")
_EXTRAS: Final = {
    "hive": "nightkeep[hive]",
    "thrift": "nightkeep[hive]",
    "glue": "nightkeep[glue]",
    "postgresql": "nightkeep[postgres]",
}
_REFUSED: Final = re.compile(
    r'password authentication failed for user "[^"]*"|no pg_hba\.conf entry for host "[^"]*"'
    r'|role "[^"]*" does not exist|permission denied for [^;]*|fe_sendauth: no password supplied'
)
_PLAIN: Final = {
    "connection refused": re.compile(r"[Cc]onnection refused"),
    "no such host": re.compile(
        r"Name or service not known|nodename nor servname|name resolution|could not translate host name"
        r"|Failed to resolve"
    ),
    "no answer in time": re.compile(r"timed out|timeout expired|TSocket read timeout"),
    "a certificate that is not trusted": re.compile(r"certificate verify failed"),
    "a connection that was closed": re.compile(r"Connection reset by peer|RemoteDisconnected|read 0 bytes"),
}
