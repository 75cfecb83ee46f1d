"""What Arrow's fields hold of Parquet."""

import pyarrow as pa
import pytest

from nightkeep.model.arrow_types import field_id


@pytest.mark.parametrize(("metadata", "number"), [(None, None), ({"x": "1"}, None), ({"PARQUET:field_id": "7"}, 7)])
def test_the_id_of_a_field(metadata: dict[str, str] | None, number: int | None) -> None:
    assert field_id(pa.field("a", pa.int8(), metadata=metadata)) == number
