"""`budget:` of a policy: what tables may cost together."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from nightkeep.policy.setting_types import Duration, Size


class Budget(BaseModel):
    """What the tables of a night, or of a pattern, may cost together, as it is predicted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    time: Duration | None = Field(default=None, description="Time of sessions, one after the other. null: no limit.")
    task_time: Duration | None = Field(default=None, description="Time of all tasks added up. null: no limit.")
    bytes: Size | None = Field(default=None, description="Bytes read and written. null: no limit.")
    longest_wait: Annotated[StrictInt, Field(ge=1)] = Field(
        default=7, description="A table with work that was left out so many nights is taken whatever it costs."
    )
