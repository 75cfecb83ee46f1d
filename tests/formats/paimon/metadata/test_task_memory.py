"""What a task may hold for rows."""

from nightkeep.formats.paimon.metadata.task_memory import BASE_BYTES, LEAST_BYTES, ROW_BYTES, row_bytes, spare_bytes


def test_what_the_process_itself_needs_is_left_out() -> None:
    assert spare_bytes(2 << 30) == (2 << 30) - BASE_BYTES
    assert spare_bytes(1) == spare_bytes(BASE_BYTES) == LEAST_BYTES


def test_rows_are_larger_in_memory_than_in_files() -> None:
    assert row_bytes(1000, 10) == ROW_BYTES + 400
    assert row_bytes(0, 0) == ROW_BYTES
