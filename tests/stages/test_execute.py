"""Tasks of a plan -> rewrites: which function of the table does which task."""

import pytest

from nightkeep.formats.memory.format import table_of
from nightkeep.model import Address, Estimate, Operation, Plan, PlannedUnit, Run, UnitKey, VersionIdentity
from nightkeep.protocol import Wide
from nightkeep.stages.execute import execute
from nightkeep.tasks import inline

TABLE = table_of(Address("memory", "shop.visits", "shop.visits"))


def test_a_wide_task_is_refused_where_the_format_has_none() -> None:
    unit = PlannedUnit(UnitKey("day=1"), "large", (), 0, Estimate(0, 0, 1, "nothing"), (Wide(None, (), 1),))
    planned = Plan(TABLE.address, Operation.OPTIMIZE, VersionIdentity(1, "one"), (unit,))
    with pytest.raises(TypeError, match=r"memory:shop\.visits: expected no wide task, found Wide"):
        execute(TABLE, planned, Run("night", "0" * 16, "a", 0), mapper=inline)
