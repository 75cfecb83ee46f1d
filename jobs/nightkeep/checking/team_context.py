"""Validations of a run -> a team's own project of Great Expectations, beside its own results.

<project>/great_expectations.yml      the team's; nothing in it is changed, and no project is made where there is none
<its store of validation results>     nightkeep-<table>-<suite> / <run id> / <time> / <operation>-<n>

A run that is tried again replaces its own results. What the project's stores are is the team's affair: they are written
by Great Expectations, as it would for a checkpoint of theirs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nightkeep.checking.data_docs import loaded_validation
from nightkeep.checking.expectations import GX_AT_WORK
from nightkeep.checking.quick_import import quick_import
from nightkeep.errors import EvidenceError
from nightkeep.records.document import RunDocument
from nightkeep.records.file_names import slug

with quick_import():
    from great_expectations.core.run_identifier import RunIdentifier
    from great_expectations.data_context.data_context.file_data_context import FileDataContext
    from great_expectations.data_context.types.resource_identifiers import (
        ExpectationSuiteIdentifier,
        ValidationResultIdentifier,
    )

_PROJECT: Final = "great_expectations.yml"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def store_in_context(folder: str, document: RunDocument, validations: Sequence[Mapping[str, Any]]) -> None:
    """Store the validations of a run in the project of this folder. Raises EvidenceError where there is none, and
    whatever Great Expectations raises for one that it cannot read or write."""
    root = _root(folder)
    run = RunIdentifier(run_name=slug(document.run_id), run_time=document.started_at)
    with GX_AT_WORK:
        store = FileDataContext(context_root_dir=root).validation_results_store
        for number, validation in enumerate(validations, 1):
            loaded, _ = loaded_validation(validation)
            loaded.meta = {**(loaded.meta or {}), "run_id": run, "nightkeep_table": document.table}
            suite = _UNSAFE.sub("-", f"nightkeep-{document.table}-{loaded.suite_name}")
            key = ValidationResultIdentifier(
                ExpectationSuiteIdentifier(name=suite), run, f"{document.operation}-{number}"
            )
            loaded.suite_name = suite
            store.set(key=key, value=loaded)


def _root(folder: str) -> str:
    """The folder of the project's file, which Great Expectations itself puts into one named `gx`."""
    for each in (folder, os.path.join(folder, "gx")):
        if os.path.isfile(os.path.join(each, _PROJECT)):
            return os.path.abspath(each)
    raise EvidenceError(folder, f"a project of Great Expectations ({_PROJECT})", "none")
