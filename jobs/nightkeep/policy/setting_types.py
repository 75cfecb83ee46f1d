"""The values of settings: text in the file -> a checked value, with its JSON schema for editors."""

from __future__ import annotations

from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StrictFloat,
    StrictInt,
    StrictStr,
)
from pydantic.json_schema import WithJsonSchema

from nightkeep.model import Clustering
from nightkeep.model.own_expectations import OwnExpectation
from nightkeep.model.prices import Prices
from nightkeep.model.receivers import Receiver
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.policy.address import NAME_PATTERN, is_address
from nightkeep.policy.clustering import CLUSTERING_SCHEMA, parse_clustering
from nightkeep.policy.own_expectations import EXPECTATIONS_SCHEMA, SuiteFile, parse_expectations
from nightkeep.policy.receivers import RECEIVERS_SCHEMA, parse_receivers
from nightkeep.policy.spark_settings import SPARK_SCHEMA, SparkSettings, parse_spark
from nightkeep.policy.units import (
    DURATION_PATTERN,
    SIZE_PATTERN,
    WINDOWS_SCHEMA,
    Windows,
    format_duration,
    parse_duration,
    parse_size,
    parse_windows,
)
from nightkeep.policy.when import WHEN_SCHEMA, When, parse_when


def _a_day_or_longer(duration: int) -> int:
    if duration < DAY_MS:
        raise ValueError("at least 24h", format_duration(duration))
    return duration


def _longer_than_a_check_waits(duration: int) -> int:
    if duration < 14 * DAY_MS:
        raise ValueError("at least 14d", format_duration(duration))
    return duration


def _not_an_address(name: str) -> str:
    if is_address(name):
        raise ValueError("a name, which does not start like an address")
    return name


Size = Annotated[int, BeforeValidator(parse_size), WithJsonSchema({"type": "string", "pattern": SIZE_PATTERN})]
Duration = Annotated[
    int, BeforeValidator(parse_duration), WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN})
]
Age = Annotated[Duration, AfterValidator(_a_day_or_longer)]
KeptFor = Annotated[Duration, AfterValidator(_longer_than_a_check_waits)]
Hours = Annotated[Windows, BeforeValidator(parse_windows), WithJsonSchema(WINDOWS_SCHEMA)]
ClusterBy = Annotated[Clustering, BeforeValidator(parse_clustering), WithJsonSchema(CLUSTERING_SCHEMA)]
Expected = Annotated[
    tuple[OwnExpectation, ...] | SuiteFile, PlainValidator(parse_expectations), WithJsonSchema(EXPECTATIONS_SCHEMA)
]
Receivers = Annotated[tuple[Receiver, ...], PlainValidator(parse_receivers), WithJsonSchema(RECEIVERS_SCHEMA)]
SparkConf = Annotated[SparkSettings, PlainValidator(parse_spark), WithJsonSchema(SPARK_SCHEMA)]
Conditions = Annotated[When, BeforeValidator(parse_when), WithJsonSchema(WHEN_SCHEMA)]
Text = Annotated[StrictStr, Field(min_length=1)]
Price = Annotated[StrictInt | StrictFloat, Field(ge=0, allow_inf_nan=False)]
Name = Annotated[StrictStr, Field(pattern=NAME_PATTERN), AfterValidator(_not_an_address)]


class Budget(BaseModel):
    """What the tables of a night, or of a pattern, may cost together, as it is predicted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    time: Duration | None = Field(default=None, description="Time of sessions, one after the other. null: no limit.")
    task_time: Duration | None = Field(default=None, description="Time of all tasks added up. null: no limit.")
    bytes: Size | None = Field(default=None, description="Bytes read and written. null: no limit.")
    longest_wait: Annotated[StrictInt, Field(ge=1)] = Field(
        default=7, description="A table with work that was left out so many nights is taken whatever it costs."
    )


class PriceList(BaseModel):
    """What storage, requests and work cost, for amounts on pages. There is no price by default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    currency: StrictStr = Field(default="", max_length=20, description="What amounts are called, such as EUR.")
    gb_month: Price | None = Field(default=None, description="A GB (2^30 bytes) stored for a month.")
    requests_1000: Price | None = Field(default=None, description="1,000 requests that read an object.")
    core_hour: Price | None = Field(default=None, description="An hour of a core.")

    @property
    def prices(self) -> Prices:
        return Prices(self.currency, self.gb_month, self.requests_1000, self.core_hour)


class ReportSettings(BaseModel):
    """What becomes of documents, pages and results of runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keep: KeptFor | None = Field(
        default=None,
        description="How long documents of runs are kept, with their pages and results. At least 14d. What a hold, a "
        "check or a restore still needs stays. null: all are kept.",
    )


class AuditBudget(BaseModel):
    """What the audits of one run may take together. The tables that were not audited for longest come first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    time: Duration | None = Field(default=None, description="Time of all audits added up. null: no limit.")
    bytes: Size | None = Field(default=None, description="Bytes of files that commits moved. null: no limit.")
