"""The document of a published version -> a START and a COMPLETE or FAIL event of OpenLineage. Pure.

A run's id is made of the run id and the operation: an event that is sent again is the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from uuid import UUID, uuid5

import attr
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    processing_engine_run,
)

from nightkeep.lineage.dataset_names import dataset_name
from nightkeep.model import Outcome
from nightkeep.model.version import __version__
from nightkeep.records import RunDocument
from nightkeep.redaction import redact

PRODUCER: Final = f"urn:nightkeep:{__version__}"
PROOF: Final = "nightkeep_proof"
PROOF_SCHEMA: Final = "urn:nightkeep:facets:1-0-0:NightkeepProofRunFacet.json#/$defs/NightkeepProofRunFacet"
_RUNS: Final = UUID("6f0c7f5e-6d0a-5f0e-9a55-2f1d7c3f8e11")


@attr.define
class NightkeepProofRunFacet(RunFacet):
    """How a run ended and what was proven, by NightkeepProofRunFacet.json of this folder."""

    outcome: str
    operation: str
    baseVersion: int | None = None
    parentVersion: int | None = None
    committedVersion: int | None = None
    reason: str | None = None
    verifyLevel: str | None = None
    rowsProven: int = 0
    unitsProven: int = 0
    check: str | None = None
    coverage: str | None = None
    goBack: str | None = None

    @staticmethod
    def _get_schema() -> str:
        return PROOF_SCHEMA


def run_events(document: RunDocument, namespace: str) -> Iterator[RunEvent]:
    """The events of a document, none where it published no version. `namespace` is that of the job."""
    if document.committed_version is None:
        return
    job = Job(namespace, f"{document.table}.{document.operation}", {"jobType": _job_type()})
    run_id = str(uuid5(_RUNS, f"{document.run_id}\n{document.operation}"))
    verified = document.outcome is Outcome.VERIFIED
    ends = RunState.COMPLETE if verified else RunState.FAIL
    for state, at in ((RunState.START, document.started_at), (ends, document.finished_at)):
        facets: dict[str, RunFacet] = {"processing_engine": _engine()}
        if state is not RunState.START:
            facets[PROOF] = _proof(document)
        if state is RunState.FAIL:
            facets["errorMessage"] = _error(document)
        yield RunEvent(
            eventType=state,
            eventTime=at.isoformat(),
            run=Run(run_id, facets),
            job=job,
            producer=PRODUCER,
            inputs=[_input(document)],
            outputs=[] if state is RunState.START else [_output(document)],
        )


def _job_type() -> job_type_job.JobTypeJobFacet:
    return job_type_job.JobTypeJobFacet("BATCH", "NIGHTKEEP", "JOB", producer=PRODUCER)


def _engine() -> processing_engine_run.ProcessingEngineRunFacet:
    return processing_engine_run.ProcessingEngineRunFacet(version=__version__, name="nightkeep", producer=PRODUCER)


def _error(document: RunDocument) -> error_message_run.ErrorMessageRunFacet:
    text = redact(f"{document.outcome}: {document.reason or 'no reason is known'}")
    return error_message_run.ErrorMessageRunFacet(message=text, programmingLanguage="python", producer=PRODUCER)


def _proof(document: RunDocument) -> NightkeepProofRunFacet:
    def hidden(text: str | None) -> str | None:
        return None if text is None else redact(text)

    return NightkeepProofRunFacet(
        outcome=document.outcome.value,
        operation=document.operation.value,
        baseVersion=document.base_version,
        parentVersion=document.parent_version,
        committedVersion=document.committed_version,
        reason=hidden(document.reason),
        verifyLevel=None if document.verification is None else document.verification.level.value,
        rowsProven=document.rows_proven,
        unitsProven=sum(bool(unit.equal and not unit.faults) for unit in document.units),
        check=document.expectations.status.value,
        coverage=hidden(document.expectations.coverage),
        goBack=hidden(document.go_back),
        producer=PRODUCER,
    )


def _version(version: int) -> dataset_version_dataset.DatasetVersionDatasetFacet:
    return dataset_version_dataset.DatasetVersionDatasetFacet(str(version), producer=PRODUCER)


def _input(document: RunDocument) -> InputDataset:
    namespace, name = _dataset(document)
    base = document.base_version
    return InputDataset(namespace, name, facets={} if base is None else {"version": _version(base)})


def _output(document: RunDocument) -> OutputDataset:
    """The table as it is after the run: its size is that of all of its data files."""
    namespace, name = _dataset(document)
    assert document.committed_version is not None
    metrics = document.metrics
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=metrics.rows, size=metrics.bytes_after, fileCount=metrics.files_after, producer=PRODUCER
    )
    facets: dict[str, DatasetFacet] = {"version": _version(document.committed_version)}
    return OutputDataset(namespace, name, facets=facets, outputFacets={"outputStatistics": statistics})


def _dataset(document: RunDocument) -> tuple[str, str]:
    return dataset_name(document.address or f"{document.format}:{document.table}")
