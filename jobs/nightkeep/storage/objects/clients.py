"""Location, options and environment -> a client of one bucket, which retries for a while and then raises an error.

A client is made once per process: it does not survive a fork, and the environment may have other credentials by then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from nightkeep.errors import AddressError
from nightkeep.storage.objects import azure_settings, google_settings
from nightkeep.storage.objects.failures import ADVICE
from nightkeep.storage.objects.first_contact import has_role, require_first_answer
from nightkeep.storage.objects.properties import given
from nightkeep.storage.objects.renewed import Options, Renewal, current

if TYPE_CHECKING:
    from obstore.store import (
        AzureConfig,
        AzureCredential,
        ClientConfig,
        GCSCredential,
        RetryConfig,
        S3Config,
        S3Credential,
    )

Client: TypeAlias = S3Store | GCSStore | AzureStore

# A nightly run can wait out a minute in which a store throttles, answers 5xx or is away; after a longer failure the
# scheduler retries. Requests that are safe to repeat are repeated. One that must not be done twice, and may have been
# done, is left to the caller. An answer of 4xx is one, and is not asked for again.
RETRY_SECONDS = 60
# The time decides, never the number: refused connections cost milliseconds, so that eight tries were over in seconds.
RETRIES = 10_000
FIRST_WAIT_MS = 100
LONGEST_WAIT_SECONDS = 5
_ASKED_AGAIN_SECONDS: Final = 60
# For one request with its body. Parts and ranges are a few MiB.
_REQUEST_SECONDS: Final = 120

_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
# The strongest last.
_VARIABLES: Final = {
    "endpoint": tuple(reversed(_ENDPOINTS)),
    "region": ("AWS_DEFAULT_REGION", "AWS_REGION"),
    "access_key_id": ("AWS_ACCESS_KEY_ID",),
    "secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
    "token": ("AWS_SESSION_TOKEN",),
}
_NAMES_CREDENTIALS: Final = (
    *("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SKIP_SIGNATURE"),
    *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
)
"""Where one of these is set, the client asks no service of the machine for keys."""


def s3_settings(options: Options) -> Mapping[str, str]:
    """How to reach a bucket, by the same rules as `client`: endpoint, region, access_key_id, secret_access_key, token.

    Only those that the options or the environment set. Keys of options are never mixed with a token of the environment.
    """
    own = given("s3", options)
    own.pop("expires_at_ms", None)
    settings = {ours: os.environ[name] for ours, names in _VARIABLES.items() for name in names if os.environ.get(name)}
    if "access_key_id" in own:
        settings = {ours: value for ours, value in settings.items() if ours in ("endpoint", "region")}
    return {**settings, **own}


def client(scheme: str, authority: str, options: Options, renewal: Renewal | None = None) -> Client:
    """The client of a bucket. It is made anew if the environment has changed.

    With a `renewal`, credentials are renewed before they end.

    S3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL, web identities and
    instance roles, but no profiles. Options take precedence. Requests are path-style; plain HTTP if the endpoint is.
    Google and Azure: the variables of the client, which docs/storage.md lists. Raises AddressError for settings that it
    does not take, PermissionError if nothing gives credentials, and OSError if an endpoint of one's own is silent.
    """
    environment = tuple(sorted((k, v) for k, v in os.environ.items() if k.startswith(("AWS_", "GOOGLE_", "AZURE_"))))
    return _client(scheme, authority, options, renewal, environment)


@lru_cache(maxsize=64)
def _client(scheme: str, authority: str, options: Options, renewal: Renewal | None, environment: Options) -> Client:
    try:
        if scheme == "s3":
            return _s3(authority, options, renewal, dict(environment))
        return _gs(authority, options, renewal) if scheme == "gs" else _azure(authority, options, renewal)
    except BaseError as failure:
        found = str(failure).partition("Debug source:")[0].strip()
        raise AddressError(f"{scheme}://{authority}: expected settings of a store, found {found}") from failure


def _s3(bucket: str, options: Options, renewal: Renewal | None, environment: Mapping[str, str]) -> S3Store:
    own = given("s3", options)
    endpoint = own.get("endpoint") or next((environment[name] for name in _ENDPOINTS if environment.get(name)), "")
    config: S3Config = {}
    if endpoint:
        _require_address(endpoint, "AWS_ENDPOINT_URL, or s3.endpoint of the catalog")
        require_first_answer(endpoint, ADVICE["s3"].silent)
        config["aws_endpoint_url_s3"] = endpoint
    if not ("access_key_id" in own or any(environment.get(name) for name in _NAMES_CREDENTIALS)):
        _require_role("s3", bucket)
    if "region" in own:
        config["region"] = own["region"]

    def provide() -> S3Credential:
        """The keys of the options, never mixed with a session token of the environment."""
        keys = given("s3", current(options, renewal))
        return {
            "access_key_id": keys["access_key_id"],
            "secret_access_key": keys.get("secret_access_key", ""),
            "token": keys.get("token"),
            "expires_at": _asked_again(renewal),
        }

    return S3Store(
        bucket,
        config=config,
        client_options=_client_options(endpoint),
        retry_config=_retries(),
        credential_provider=provide if "access_key_id" in own else None,
    )


def _gs(bucket: str, options: Options, renewal: Renewal | None) -> GCSStore:
    endpoint = google_settings.google_settings(options).get("endpoint", "")
    if endpoint:
        _require_address(endpoint, "GOOGLE_BASE_URL, or gcs.service.host of the catalog")
        require_first_answer(endpoint, ADVICE["gs"].silent)
    if not google_settings.names_credentials(options):
        _require_role("gs", bucket)

    def provide() -> GCSCredential:
        token = given("gs", current(options, renewal))["token"]
        return {"token": token, "expires_at": _asked_again(renewal)}

    return GCSStore(
        bucket,
        config={"base_url": endpoint} if endpoint else {},
        client_options=_client_options(endpoint),
        retry_config=_retries(),
        credential_provider=provide if "token" in given("gs", options) else None,
    )


def _azure(authority: str, options: Options, renewal: Renewal | None) -> AzureStore:
    container = azure_settings.container_of(authority, options)
    _require_address(container.endpoint, "AZURE_STORAGE_ENDPOINT")
    require_first_answer(container.endpoint, ADVICE["abfss"].silent)
    if not azure_settings.names_credentials(options, container.account):
        _require_role("abfss", authority)
    own = given("abfss", options, container.account)
    config: AzureConfig = {"account_name": container.account, "endpoint": container.endpoint}
    if "client_secret" in own:
        config |= {"credential_type": "client_secret", "client_secret": own["client_secret"]}
        config |= {"client_id": own.get("client_id", ""), "tenant_id": own.get("tenant_id", "")}

    def provide() -> AzureCredential:
        keys = given("abfss", current(options, renewal), container.account)
        again = _asked_again(renewal)
        if "sas_token" in keys:
            return {"sas_token": keys["sas_token"].removeprefix("?"), "expires_at": again}
        if "token" in keys:
            return {"token": keys["token"], "expires_at": again}
        return {"access_key": keys["account_key"], "expires_at": again}

    return AzureStore(
        container.name,
        config=config,
        client_options=_client_options(container.endpoint),
        retry_config=_retries(),
        credential_provider=provide if {"sas_token", "token", "account_key"} & own.keys() else None,
    )


def _require_address(endpoint: str, setting: str) -> None:
    """Raises AddressError for an endpoint that is no address: the client would end in a panic."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise AddressError(
            f"{endpoint}: expected http://HOST or https://HOST as the address of a store, found neither; set {setting}"
        )


def _require_role(scheme: str, authority: str) -> None:
    """Raises PermissionError where nothing gives credentials: the client would look for the machine's for minutes."""
    if not has_role(scheme):
        raise PermissionError(f"{scheme}://{authority}: no credentials found; {ADVICE[scheme].denied}")


def _asked_again(renewal: Renewal | None) -> datetime | None:
    """The client asks for credentials again at this time, and before each request in the minutes before."""
    return None if renewal is None else datetime.now(UTC) + timedelta(seconds=_ASKED_AGAIN_SECONDS)


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
