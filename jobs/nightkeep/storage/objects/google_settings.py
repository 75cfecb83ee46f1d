"""Options and environment -> how to reach Google Cloud Storage. Pure, except for the environment and a key file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nightkeep.storage.objects.properties import given
from nightkeep.storage.objects.renewed import Options

_CREDENTIALS: Final = (
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
    "GOOGLE_BEARER_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SKIP_SIGNATURE",
)
_FILES: Final = ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_SERVICE_ACCOUNT")
# The file that `gcloud auth application-default login` writes.
_OF_GCLOUD: Final = ".config/gcloud/application_default_credentials.json"


def google_settings(options: Options) -> Mapping[str, str]:
    """Those of `endpoint`, `token` and `key_file` that options or the environment set."""
    settings = {"endpoint": os.environ.get("GOOGLE_BASE_URL", ""), "token": os.environ.get("GOOGLE_BEARER_TOKEN", "")}
    settings["key_file"] = next((os.environ[name] for name in _FILES if os.environ.get(name)), "")
    own = given("gs", options)
    own.pop("expires_at_ms", None)
    if "token" in own:
        settings["key_file"] = ""
    return {name: value for name, value in (settings | own).items() if value}


def names_credentials(options: Options) -> bool:
    """Whether options, the environment or gcloud name credentials. If not, only the machine's role gives them."""
    if "token" in given("gs", options) or any(os.environ.get(name) for name in _CREDENTIALS):
        return True
    return Path(os.environ.get("HOME", "/"), _OF_GCLOUD).is_file()
