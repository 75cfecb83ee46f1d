"""An error of a store's client -> one sentence that states what was asked, what came back, and what to set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError

from nightkeep.errors import MissingFile
from nightkeep.storage.objects.names import SCHEMES


@dataclass(frozen=True, slots=True)
class StoreAdvice:
    """What to set if a store denies access, does not answer, or names another region."""

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


@contextmanager
def asking(subject: str) -> Iterator[None]:
    """Turn errors of the client into MissingFile, FileExistsError, PermissionError or another OSError."""
    try:
        yield
    except FileNotFoundError as failure:
        if bucket := _NO_BUCKET.search(str(failure)):
            raise _no_bucket(subject, bucket) from failure
        raise MissingFile(subject, "a file that metadata names", "no such file") from None
    except AlreadyExistsError as failure:
        raise FileExistsError(_sentence(subject, failure)) from failure
    except BaseError as failure:
        raise _failure(subject, failure) from failure


def _failure(subject: str, failure: BaseError) -> OSError:
    text, advice = str(failure), _advice(subject)
    if _ASKED_FOR_A_ROLE.search(text):
        # The role of the machine is the last source of keys: no other source had any.
        return PermissionError(f"{subject}: no credentials found; {advice.denied}")
    if match := _NO_TOKEN.search(text):
        return PermissionError(f"{subject}: {match[1]} gives no token ({match[2]}); {advice.denied}")
    if _OTHER_REGION.search(text):
        named = _REGION.search(text)
        region = named[1] if named else "the bucket's own"
        return OSError(f"{subject}: the bucket is in another region; {advice.elsewhere}{region}")
    if bucket := _NO_BUCKET.search(text):
        return _no_bucket(subject, bucket)
    if isinstance(failure, PermissionDeniedError | UnauthenticatedError) or _DENIED.search(text):
        matches = (pattern.search(text) for pattern in (_DENIED, _CODE))
        codes = " ".join(match[1] for match in matches if match)
        denied = f"access denied ({codes})" if codes else "access denied"
        return PermissionError(f"{subject}: {denied}; {advice.denied}")
    if match := _NO_ANSWER.search(text):
        place, waited = match[1] or "the store", _WAITED.search(text)
        within = f" within {_seconds(waited[1], waited[2])} s" if waited else ""
        return OSError(f"{subject}: no answer from {place}{within}; if it is not down, {advice.silent}")
    return OSError(_sentence(subject, failure))


def _seconds(number: str, unit: str) -> int:
    return round(float(number) / (1 if unit == "s" else 1000))


def _no_bucket(subject: str, answered: re.Match[str]) -> OSError:
    place, advice = answered[1] or "the store", _advice(subject)
    return OSError(f"{subject}: no such {advice.bucket} at {place}; {advice.silent}, or name another {advice.bucket}")


def _sentence(subject: str, failure: Exception) -> str:
    return f"{subject}: {str(failure).partition('Debug source:')[0].strip()}"


def _advice(subject: str) -> StoreAdvice:
    return ADVICE.get(SCHEMES.get(subject.partition("://")[0], ""), ADVICE["s3"])


# Some denials are generic errors with the whole answer. It may repeat secrets of the request, so it is not shown.
_DENIED: Final = re.compile(
    r"status code: (40[13]\b|400(?=.*<Code>(?:ExpiredToken|InvalidToken|TokenRefreshRequired)<))", re.DOTALL
)
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
# The addresses at which cloud machines request the keys of their role.
_ASKED_FOR_A_ROLE: Final = re.compile(
    r"Error performing \w+ \S+/(?:latest/(?:api/token|meta-data/)|computeMetadata/|metadata/identity/|msi/token)"
)
# The client does not show an address with a signature in it.
_PLACE: Final = r"Error performing \w+ (?:(\w+://[^/?\s]+)|REDACTED)"
_NO_TOKEN: Final = re.compile(
    rf"Error performing token request: {_PLACE}.*?(status code: 4\d\d|error sending request)", re.DOTALL
)
_NO_ANSWER: Final = re.compile(rf"{_PLACE}.*HTTP error: error sending request", re.DOTALL)
# How long the client has tried, all its tries together.
_WAITED: Final = re.compile(r"\bin ([\d.]+)(s|ms), after \d+ retries")
_NO_BUCKET: Final = re.compile(rf"{_PLACE}.*<Code>(?:NoSuchBucket|ContainerNotFound)</Code>", re.DOTALL)
# Amazon answers with a redirect without an address where the endpoint is another region's.
_OTHER_REGION: Final = re.compile(
    r"<Code>AuthorizationHeaderMalformed</Code>.*<Region>|<Code>(?:PermanentRedirect|IllegalLocationConstraintException)<"
    r"|redirect without LOCATION",
    re.DOTALL,
)
_REGION: Final = re.compile(r"<Region>([\w-]+)</Region>")
