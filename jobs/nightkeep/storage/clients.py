"""Location, options and environment -> a client of one bucket, which retries for a while and then raises an error.

A client is made once per process: it does not survive a fork, and the environment may have other credentials by then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from obstore.store import AzureStore, GCSStore, S3Store, from_url

from nightkeep.errors import AddressError
from nightkeep.storage.renewed import ENDS, Options, Renewal, current

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Credential

Client: TypeAlias = S3Store | GCSStore | AzureStore

SCHEMES: Final = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "abfss": "abfss", "abfs": "abfss"}
"""Schemes of object stores, each with its common name."""

# A nightly run can wait out a minute of throttling; after a longer failure the scheduler retries. Requests that are
# safe to repeat are repeated. One that must not be done twice, and may have been done, is left to the caller.
RETRY_SECONDS = 60
RETRIES = 8
FIRST_WAIT_MS = 100
LONGEST_WAIT_SECONDS = 10
_ASKED_AGAIN_SECONDS: Final = 60
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
    ENDS: "expires_at_ms",
}
KEYS: Final = ("s3.access-key-id", "client.access-key-id")
"""Properties that name keys to a store."""
SECRETS: Final = tuple(name for name, ours in _NAMES.items() if ours not in ("region", "endpoint"))
"""Properties that belong to such keys, and to no others."""
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
    given = _given(options)
    given.pop("expires_at_ms", None)
    settings = {ours: os.environ[name] for ours, names in _VARIABLES.items() for name in names if os.environ.get(name)}
    if "access_key_id" in given:
        settings = {ours: value for ours, value in settings.items() if ours in ("endpoint", "region")}
    return {**settings, **given}


def client(scheme: str, authority: str, options: Options, renewal: Renewal | None = None) -> Client:
    """The client of a bucket. It is made anew if the environment has changed.

    With a `renewal`, credentials are renewed before they end.

    S3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL, web identities and
    instance roles, but no profiles. Options take precedence. Requests are path-style; plain HTTP if the endpoint is.
    """
    environment = tuple(sorted((k, v) for k, v in os.environ.items() if k.startswith(("AWS_", "GOOGLE_", "AZURE_"))))
    return _client(scheme, authority, options, renewal, environment)


@lru_cache(maxsize=64)
def _client(scheme: str, authority: str, options: Options, renewal: Renewal | None, environment: Options) -> Client:
    if scheme == "s3":
        return _s3(authority, options, renewal, dict(environment))
    client = from_url(f"{scheme}://{authority}", client_options=_client_options(""), retry_config=_retries())
    if not isinstance(client, GCSStore | AzureStore):
        raise AddressError(f"{scheme}://{authority}: expected a bucket of an object store")
    return client


def _by_strength(options: Options) -> Options:
    places = list(_NAMES)
    return tuple(sorted(options, key=lambda option: places.index(option[0])))


def _s3(bucket: str, options: Options, renewal: Renewal | None, environment: Mapping[str, str]) -> S3Store:
    given = _given(options)
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
        credential_provider=_credentials(options, renewal),
    )


def _require_address(endpoint: str) -> None:
    """Raises AddressError for an endpoint that is no address: the client would end in a panic."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise AddressError(
            f"{endpoint}: expected http://HOST or https://HOST as the address of a store, found neither; "
            "set AWS_ENDPOINT_URL, or s3.endpoint of the catalog"
        )


def _credentials(options: Options, renewal: Renewal | None) -> Callable[[], S3Credential] | None:
    """The keys of the options, never mixed with a session token of the environment; None if options have none."""
    if "access_key_id" not in _given(options):
        return None

    def provide() -> S3Credential:
        given = _given(current(options, renewal))
        return {
            "access_key_id": given["access_key_id"],
            "secret_access_key": given.get("secret_access_key", ""),
            "token": given.get("token"),
            # The client asks again at this time, and before each request in the minutes before.
            "expires_at": None if renewal is None else datetime.now(UTC) + timedelta(seconds=_ASKED_AGAIN_SECONDS),
        }

    return provide


def _given(options: Options) -> dict[str, str]:
    return {_NAMES[name]: value for name, value in _by_strength(options)}


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
