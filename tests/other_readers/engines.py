"""The engines that are asked, each in the environment that its lock makes, and what is known of them."""

import sys
from collections.abc import Mapping

from tests.drivers.lakes_oracle import lakes_python
from tests.drivers.pypaimon_oracle import pypaimon_python

from nightkeep.model import Address
from nightkeep.model.check_values import ReaderName
from nightkeep.other_readers.agreement import read_by_both
from nightkeep.other_readers.reader_process import OtherReader, ReaderProcess

OTHER_ROWS = "other rows"
NO_EQUALITY_DELETES = "ValueError: PyIceberg does not yet support equality deletes"

KNOWN: Mapping[tuple[ReaderName, str], str] = {
    (ReaderName.DELTALAKE, "protocol_checks"): "Unsupported table features required: [VacuumProtocolCheck]",
    (ReaderName.DELTALAKE, "type_widening"): "Unsupported table features required: [TypeWidening]",
    # Partition columns are null, on tables that delta-spark wrote.
    (ReaderName.DUCKDB, "mapping_id"): OTHER_ROWS,
    (ReaderName.DUCKDB, "mapping_name"): OTHER_ROWS,
    (ReaderName.DUCKDB, "odd_paths_v2"): "InternalException: INTERNAL Error: Comparison on NULL values",
    **{
        (ReaderName.PYICEBERG, name): NO_EQUALITY_DELETES
        for name in (
            "odd_paths_v2",
            "specs_deleted_v2",
            "upserts_of_two_keys_v2",
            "upserts_v3",
            "changelog_v2",
            "mixed_keys_v2",
            "null_keys_v3",
            "lineage",
            "orders",
            "customers",
        )
    },
    (ReaderName.PYPAIMON, "baskets"): "NotImplementedError: merge-engine 'partial-update' is enabled together with",
    (ReaderName.PYPAIMON, "visits"): "NotImplementedError: merge-engine 'aggregation' is enabled together with",
    (ReaderName.PYPAIMON, "positions"): "RuntimeError: Invalid magic number",
}
"""Why an engine does not read a table as all others do: versions of it are locked."""


def other_reader(name: ReaderName) -> OtherReader:
    """pyiceberg is a dependency of our own."""
    if name is ReaderName.PYICEBERG:
        return OtherReader(name, sys.executable)
    return OtherReader(name, str(pypaimon_python() if name is ReaderName.PYPAIMON else lakes_python()))


def assert_read_alike(address: Address, table: str, version: int, process: ReaderProcess) -> None:
    """In all views, but for what is known of the engine and this table."""
    known = KNOWN.get((process.name, table))
    for seen in read_by_both(address, version, process):
        assert not seen.theirs.ended, seen
        if known is None:
            assert seen.agree, seen
        else:
            assert known in (seen.theirs.reason or OTHER_ROWS) and not seen.agree, seen
