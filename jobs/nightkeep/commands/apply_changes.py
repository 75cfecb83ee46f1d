"""Arguments of the job script that applies changes -> an applied batch -> its result, as JSON on stdout."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

from nightkeep.api.changes import apply_changes
from nightkeep.commands.exit_status import parsed
from nightkeep.formats.iceberg.upsert.batch import ChangeMode, Distribution
from nightkeep.redaction import redacted_output


@redacted_output()
def apply_job(argv: Sequence[str]) -> int:
    """Apply the batch of `argv` and print the result as JSON. Raises what `api.apply_changes` raises."""
    arguments = _parse(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    applied = apply_changes(
        arguments.table,
        arguments.files,
        batch_id=arguments.batch_id,
        mode=arguments.mode,
        key=arguments.key,
        distribution=arguments.distribution,
        writers=arguments.writers,
        policy=arguments.policy,
        master=os.environ.get("NIGHTKEEP_MASTER", "local[*]"),
    )
    sys.stdout.write(json.dumps(asdict(applied)) + "\n")
    return 0


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--table", required=True, help="name or address: iceberg:CATALOG/NAMESPACE.TABLE")
    parser.add_argument("--policy", help="tables.yaml, where --table is a name of it")
    parser.add_argument("--batch-id", required=True, help="the batch's own name: applied once, however often it is run")
    parser.add_argument("--mode", required=True, choices=[str(each) for each in ChangeMode])
    parser.add_argument("--key", help="equality fields, separated by commas; the table's identifier fields by default")
    parser.add_argument("--distribution", default="none", choices=[str(each) for each in Distribution])
    parser.add_argument("--writers", type=int, default=1, help="more than one run on Spark")
    parser.add_argument("files", nargs="+", help="change files in their order: Parquet or JSON Lines")
    return parsed(parser, argv)
