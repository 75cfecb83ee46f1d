"""Location, options and environment -> a client of one bucket, which retries for a while and then says what is wrong.

Built once per process: clients do not survive a fork, and credentials in the environment may be another's by then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import AzureStore, GCSStore, S3Store, from_url

from nightkeep.errors import AddressError, MissingFile

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Credential

Client: TypeAlias = S3Store | GCSStore | AzureStore
Options: TypeAlias = tuple[tuple[str, str], ...]

SCHEMES: Final = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "abfss": "abfss", "abfs": "abfss"}
"""Schemes of object stores, and the one that each is the same as."""

# A night's work outlasts a minute of throttling; what lasts longer is for its scheduler. Requests that may be repeated
# safely are; one that may have been done and must not be done twice is left to the caller.
RETRY_SECONDS = 60
RETRIES = 8
FIRST_WAIT_MS = 100
LONGEST_WAIT_SECONDS = 10
# Of one request with its body: the parts and ranges that are asked for are a few MiB.
_REQUEST_SECONDS: Final = 120

# Properties of Iceberg catalogs (org.apache.iceberg.aws.s3.S3FileIOProperties, pyiceberg.io), the stronger one last.
_NAMES: Final = {
    "client.region": "region",
    "client.access-key-id": "access_key_id",
    "client.secret-access-key": "secret_access_key",
    "client.session-token": "token",
    "s3.region": "region",
    "s3.access-key-id": "access_key_id",
    "s3.secret-access-key": "secret_access_key",
    "s3.session-token": "token",
    "s3.endpoint": "endpoint",
}
# What the client refuses in a key.
_UNREADABLE: Final = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
# Of S3 and of GCS, in bytes; Azure has as many characters.
_MAX_KEY: Final = 1024
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
# The strongest last.
_VARIABLES: Final = {
    "endpoint": tuple(reversed(_ENDPOINTS)),
    "region": ("AWS_DEFAULT_REGION", "AWS_REGION"),
    "access_key_id": ("AWS_ACCESS_KEY_ID",),
    "secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
    "token": ("AWS_SESSION_TOKEN",),
}


@lru_cache(maxsize=64)
def split_location(location: str) -> tuple[str, str, str]:
    """Scheme, authority and prefix of a location, as keys are spelled: nothing is decoded, `?` and `#` are letters.

    Raises AddressError for a prefix that no folder can have.
    """
    scheme, _, rest = location.partition("://")
    authority, _, prefix = rest.partition("/")
    prefix = prefix.rstrip("/")
    if "@" in authority and SCHEMES.get(scheme) in ("s3", "gs"):
        raise AddressError(f"{scheme}://: expected a bucket, found user info: credentials belong into the environment")
    if scheme not in SCHEMES or not authority:
        raise AddressError(f"{location}: expected one of {', '.join(SCHEMES)} and a bucket")
    if prefix and not is_key(prefix):
        raise AddressError(f"{location}: expected a folder without empty, '.' or '..' parts in its path")
    return SCHEMES[scheme], authority, prefix


def is_key(name: str) -> bool:
    """Whether `name` is spelled in the only way that we and the client read alike."""
    known = len(name) <= _MAX_KEY and not _UNREADABLE.search(name)
    return known and not {"", ".", ".."} & set(name.split("/"))


def relevant(properties: Mapping[str, str]) -> Options:
    """What of a catalog's properties, such as `s3.endpoint`, tells how to reach its store."""
    return tuple(sorted((name, value) for name, value in properties.items() if name in _NAMES and value))


def s3_settings(options: Options) -> Mapping[str, str]:
    """How to reach a bucket, by `client`'s own rules: endpoint, region, access_key_id, secret_access_key and token,
    those that options or the environment tell. Keys of options are never mixed with a token of the environment."""
    given = {_NAMES[name]: value for name, value in _by_strength(options)}
    settings = {ours: os.environ[name] for ours, names in _VARIABLES.items() for name in names if os.environ.get(name)}
    if "access_key_id" in given:
        settings = {ours: value for ours, value in settings.items() if ours in ("endpoint", "region")}
    return {**settings, **given}


def client(scheme: str, authority: str, options: Options) -> Client:
    """The client of a bucket, made anew where the environment has changed.

    S3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL, web identities and
    instance roles; no profiles. Options are stronger. Requests are path-style, and plain HTTP where the endpoint is.
    """
    environment = tuple(sorted((k, v) for k, v in os.environ.items() if k.startswith(("AWS_", "GOOGLE_", "AZURE_"))))
    return _client(scheme, authority, options, environment)


@contextmanager
def asking(subject: str) -> Iterator[None]:
    """Raises MissingFile, FileExistsError, PermissionError or another OSError for what the client raises."""
    try:
        yield
    except FileNotFoundError:
        raise MissingFile(subject, "a file that metadata names", "no such file") from None
    except AlreadyExistsError as failure:
        raise FileExistsError(_said(subject, failure)) from failure
    except BaseError as failure:
        if _ASKED_FOR_A_ROLE.search(str(failure)):
            # The machine's role is asked for keys last: nothing else had any.
            raise PermissionError(f"{subject}: no credentials found; {_advice(subject).denied}") from failure
        if isinstance(failure, PermissionDeniedError | UnauthenticatedError) or _DENIED.search(str(failure)):
            matches = (pattern.search(str(failure)) for pattern in (_DENIED, _CODE))
            codes = " ".join(match[1] for match in matches if match)
            denied = f"access denied ({codes})" if codes else "access denied"
            raise PermissionError(f"{subject}: {denied}; {_advice(subject).denied}") from failure
        if match := _NO_ANSWER.search(str(failure)):
            raise OSError(f"{subject}: no answer from {match[1]}; {_advice(subject).silent}") from failure
        raise OSError(_said(subject, failure)) from failure


def _said(subject: str, failure: Exception) -> str:
    return f"{subject}: {str(failure).partition('Debug source:')[0].strip()}"


@dataclass(frozen=True, slots=True)
class _Advice:
    """What to set where a store denies access, and where it gives no answer."""

    denied: str
    silent: str


def _advice(subject: str) -> _Advice:
    return _ADVICE.get(SCHEMES.get(subject.partition("://")[0], ""), _ADVICE["s3"])


_ADVICE: Final = {
    "s3": _Advice(
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role gives access",
        "set AWS_ENDPOINT_URL to the address of the store",
    ),
    "gs": _Advice(
        "set GOOGLE_APPLICATION_CREDENTIALS to the file of a key that has access",
        "set GOOGLE_BASE_URL, or unset it for Google's own store",
    ),
    "abfss": _Advice(
        "set AZURE_STORAGE_ACCOUNT_KEY, or another credential that has access",
        "set AZURE_STORAGE_ENDPOINT, or unset it for Azure's own store",
    ),
}
# Some requests are denied as generic errors, with the whole answer; what it repeats of the request is nobody's to read.
_DENIED: Final = re.compile(r"status code: (40[13])\b")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
# Where machines of clouds ask for the keys of their role.
_ASKED_FOR_A_ROLE: Final = re.compile(r"Error performing \w+ \S+/latest/(?:api/token|meta-data/)")
_NO_ANSWER: Final = re.compile(r"Error performing \w+ (\w+://[^/?\s]+).*HTTP error: error sending request", re.DOTALL)


@lru_cache(maxsize=64)
def _client(scheme: str, authority: str, options: Options, environment: Options) -> Client:
    if scheme == "s3":
        return _s3(authority, {_NAMES[name]: value for name, value in _by_strength(options)}, dict(environment))
    client = from_url(f"{scheme}://{authority}", client_options=_client_options(""), retry_config=_retries())
    if not isinstance(client, GCSStore | AzureStore):
        raise AddressError(f"{scheme}://{authority}: expected a bucket of an object store")
    return client


def _by_strength(options: Options) -> Options:
    places = list(_NAMES)
    return tuple(sorted(options, key=lambda option: places.index(option[0])))


def _s3(bucket: str, given: Mapping[str, str], environment: Mapping[str, str]) -> S3Store:
    endpoint = given.get("endpoint") or next((environment[name] for name in _ENDPOINTS if environment.get(name)), "")
    config: S3Config = {}
    if endpoint:
        config["aws_endpoint_url_s3"] = endpoint
    if "region" in given:
        config["region"] = given["region"]
    return S3Store(
        bucket,
        config=config,
        client_options=_client_options(endpoint),
        retry_config=_retries(),
        credential_provider=_credentials(given),
    )


def _credentials(given: Mapping[str, str]) -> Callable[[], S3Credential] | None:
    """Keys of the options, never mixed with a session token of the environment; None where options have none."""
    if "access_key_id" not in given:
        return None
    credential: S3Credential = {
        "access_key_id": given["access_key_id"],
        "secret_access_key": given.get("secret_access_key", ""),
        "token": given.get("token"),
        "expires_at": None,
    }
    return lambda: credential


def _client_options(endpoint: str) -> ClientConfig:
    timeout = timedelta(seconds=_REQUEST_SECONDS)
    return {"timeout": timeout, "allow_http": True} if endpoint.startswith("http://") else {"timeout": timeout}


def _retries() -> RetryConfig:
    return {
        "max_retries": RETRIES,
        "retry_timeout": timedelta(seconds=RETRY_SECONDS),
        "backoff": {
            "init_backoff": timedelta(milliseconds=FIRST_WAIT_MS),
            "max_backoff": timedelta(seconds=LONGEST_WAIT_SECONDS),
        },
    }
