"""Location, options and environment -> a client of one bucket, which retries for a while and then raises an error.

A client is made once per process: it does not survive a fork, and the environment may have other credentials by then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from obstore.store import AzureStore, GCSStore, S3Store, from_url

from nightkeep.errors import AddressError

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Credential

Client: TypeAlias = S3Store | GCSStore | AzureStore
Options: TypeAlias = tuple[tuple[str, str], ...]

SCHEMES: Final = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "abfss": "abfss", "abfs": "abfss"}
"""Schemes of object stores, each with its common name."""

# A nightly run can wait out a minute of throttling; after a longer failure the scheduler retries. Requests that are
# safe to repeat are repeated. One that must not be done twice, and may have been done, is left to the caller.
RETRY_SECONDS = 60
RETRIES = 8
FIRST_WAIT_MS = 100
LONGEST_WAIT_SECONDS = 10
# For one request with its body. Parts and ranges are a few MiB.
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
# Characters that the client refuses in a key.
_UNREADABLE: Final = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
# The limit of S3 and GCS, in bytes. Azure allows as many characters.
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
    """Scheme, authority and prefix of a location. Nothing is decoded, and `?` and `#` have no meaning, as in keys.

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
    """Whether the client uses `name` unchanged as a key."""
    valid = len(name) <= _MAX_KEY and not _UNREADABLE.search(name)
    return valid and not {"", ".", ".."} & set(name.split("/"))


def relevant(properties: Mapping[str, str]) -> Options:
    """Those of a catalog's properties that are needed to reach its store, such as `s3.endpoint`."""
    return tuple(sorted((name, value) for name, value in properties.items() if name in _NAMES and value))


def s3_settings(options: Options) -> Mapping[str, str]:
    """How to reach a bucket, by the same rules as `client`: endpoint, region, access_key_id, secret_access_key, token.

    Only those that the options or the environment set. Keys of options are never mixed with a token of the environment.
    """
    given = {_NAMES[name]: value for name, value in _by_strength(options)}
    settings = {ours: os.environ[name] for ours, names in _VARIABLES.items() for name in names if os.environ.get(name)}
    if "access_key_id" in given:
        settings = {ours: value for ours, value in settings.items() if ours in ("endpoint", "region")}
    return {**settings, **given}


def client(scheme: str, authority: str, options: Options) -> Client:
    """The client of a bucket. It is made anew if the environment has changed.

    S3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL, web identities and
    instance roles, but no profiles. Options take precedence. Requests are path-style; plain HTTP if the endpoint is.
    """
    environment = tuple(sorted((k, v) for k, v in os.environ.items() if k.startswith(("AWS_", "GOOGLE_", "AZURE_"))))
    return _client(scheme, authority, options, environment)


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
        _require_address(endpoint)
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


def _require_address(endpoint: str) -> None:
    """Raises AddressError for an endpoint that is no address: the client would end in a panic."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise AddressError(
            f"{endpoint}: expected http://HOST or https://HOST as the address of a store, found neither; "
            "set AWS_ENDPOINT_URL, or s3.endpoint of the catalog"
        )


def _credentials(given: Mapping[str, str]) -> Callable[[], S3Credential] | None:
    """The keys of the options, never mixed with a session token of the environment; None if options have none."""
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
