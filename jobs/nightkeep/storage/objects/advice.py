"""What to set where a store denies access, does not answer, or is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class StoreAdvice:
    """What to set if a store denies access, if it does not answer, and if it names another region."""

    denied: str
    silent: str
    elsewhere: str = "set the region to "
    bucket: str = "bucket"
    """What the store calls a bucket."""


ADVICE: Final[Mapping[str, StoreAdvice]] = {
    "s3": StoreAdvice(
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role gives access",
        "set AWS_ENDPOINT_URL to the address of the store",
        "set AWS_REGION to ",
    ),
    "gs": StoreAdvice(
        "set GOOGLE_APPLICATION_CREDENTIALS to the file of a key that has access, or run where a role gives access",
        "set GOOGLE_BASE_URL, or unset it for Google's own store",
    ),
    "abfss": StoreAdvice(
        "set AZURE_STORAGE_ACCOUNT_KEY or another credential that has access, or run where an identity gives access",
        "set AZURE_STORAGE_ENDPOINT, or unset it for Azure's own store",
        bucket="container",
    ),
}
"""By the common name of a scheme."""
