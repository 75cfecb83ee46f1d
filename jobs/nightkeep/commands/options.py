"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nightkeep.model import Operation, VerifyLevel, Writers

Table = Annotated[str, typer.Argument(help="A name of tables.yaml, or an address such as paimon:/path/to/table")]
Policy = Annotated[Path | None, typer.Option("--policy", help="tables.yaml; else $NIGHTKEEP_POLICY or ./tables.yaml")]
Reports = Annotated[
    str | None,
    typer.Option("--reports", help="Folder of documents, or an address in a bucket; else reports/ beside the policy"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout")]
Master = Annotated[str, typer.Option("--master", help="Spark master")]

# What to do.
Operations = Annotated[
    list[str] | None,
    typer.Option(
        "--operation", help=f"{', '.join(each for each in Operation if not each.has_command)}; may be repeated"
    ),
]
Where = Annotated[str | None, typer.Option("--where", help="Partition filter; never changes rows")]
Full = Annotated[bool, typer.Option("--full", help="All files, not only new ones")]
Zorder = Annotated[str | None, typer.Option("--zorder", help="Cluster by these columns along a Z curve, such as a,b")]
Hilbert = Annotated[str | None, typer.Option("--hilbert", help="Cluster along a Hilbert curve, such as a,b")]
TargetSize = Annotated[str | None, typer.Option("--target-size", help="Size of files written, such as 256MB")]
MinFileSize = Annotated[str | None, typer.Option("--min-file-size", help="A file below this is small, such as 128MB")]
MaxDeletedRatio = Annotated[
    float | None, typer.Option("--max-deleted-ratio", help="Rewrite files with more of their rows deleted, 0 to 1")
]
CompactingWriters = Annotated[
    bool, typer.Option("--allow-compacting-writers", help="Run beside a writer that compacts")
]
WritersOption = Annotated[
    Writers | None, typer.Option("--writers", help="conditional: others commit by conditional writes as well")
]

# How to do it.
Verify = Annotated[VerifyLevel | None, typer.Option("--verify", help="Hash every row, or those that moved")]
NoCheck = Annotated[bool, typer.Option("--no-check", help="Leave the second opinion out")]
TaskMemory = Annotated[str | None, typer.Option("--task-memory", help="Such as 2GB")]
RunId = Annotated[str | None, typer.Option("--run-id", help="The same in every retry of a run")]
