"""Failures of Amazon's client -> errors of ours. What its caller expects is passed on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError, PartialCredentialsError

from nightkeep.errors import AddressError

GONE: Final = "EntityNotFoundException"
CHANGED: Final = "ConcurrentModificationException"
_DENIED: Final = frozenset(
    {"AccessDeniedException", "ExpiredTokenException", "InvalidSignatureException", "UnrecognizedClientException"}
)


@contextmanager
def asking_glue(subject: str) -> Iterator[None]:
    """Turn failures of Amazon's client into AddressError, or OSError if there is no answer.

    ClientError is raised for an answer that its caller expects: GONE, CHANGED."""
    try:
        yield
    except (NoCredentialsError, PartialCredentialsError) as failure:
        keys = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        raise AddressError(f"{subject}: expected credentials for Glue, found none; set {keys}") from failure
    except NoRegionError as failure:
        raise AddressError(f"{subject}: expected a region of Glue, found none; set AWS_REGION") from failure
    except BotoCoreError as failure:
        raise ConnectionError(str(failure)) from failure
    except ClientError as failure:
        if code_of(failure) in (GONE, CHANGED):
            raise
        if code_of(failure) in _DENIED:
            raise AddressError(f"{subject}: expected access to Glue, found {failure}") from failure
        raise ConnectionError(str(failure)) from failure


def code_of(failure: ClientError) -> str:
    return str(failure.response.get("Error", {}).get("Code", ""))
