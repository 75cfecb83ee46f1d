"""What happened -> documents -> files, pages and text. All three are made from documents alone."""

from nightkeep.report.document import (
    CheckStatus,
    CommitResult,
    ExpectationResult,
    Expectations,
    Metrics,
    PlanSection,
    PlanUnit,
    RunDocument,
    UnitEstimate,
    UnitResult,
    Verification,
)
from nightkeep.report.endings import ending
from nightkeep.report.leftovers import AGES, leftovers
from nightkeep.report.pages import render_index, render_run
from nightkeep.report.reading import History, Unreadable, load_document
from nightkeep.report.store import (
    Hold,
    Look,
    document_path,
    held,
    hold,
    keep_look,
    last_look,
    load_history,
    read_history,
    release,
    slug,
    store,
    write_page,
)
from nightkeep.report.summary import plan_text, summary_text

__all__ = [
    "AGES",
    "CheckStatus",
    "CommitResult",
    "ExpectationResult",
    "Expectations",
    "History",
    "Hold",
    "Look",
    "Metrics",
    "PlanSection",
    "PlanUnit",
    "RunDocument",
    "UnitEstimate",
    "UnitResult",
    "Unreadable",
    "Verification",
    "document_path",
    "ending",
    "held",
    "hold",
    "keep_look",
    "last_look",
    "leftovers",
    "load_document",
    "load_history",
    "plan_text",
    "read_history",
    "release",
    "render_index",
    "render_run",
    "slug",
    "store",
    "summary_text",
    "write_page",
]
