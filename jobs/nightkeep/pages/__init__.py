"""Documents -> pages and text for people. All of it is made from documents alone; no file is read or written."""

from nightkeep.pages.attention import Attention, Holds, attention_of
from nightkeep.pages.audit_section import audit_text
from nightkeep.pages.history_text import history_text, is_counted, run_name
from nightkeep.pages.html_pages import render_run
from nightkeep.pages.notebook import few_lines, history_card, plans_card, runs_card
from nightkeep.pages.overview_pages import Overview, render_fleet, render_index, render_table
from nightkeep.pages.retention_section import leftovers
from nightkeep.pages.row_values_page import render_row_values
from nightkeep.pages.summary import plan_head, plan_text, plans_text, removal_text, summary_text
from nightkeep.pages.templating import Links

__all__ = [
    "Attention",
    "Holds",
    "Links",
    "Overview",
    "attention_of",
    "audit_text",
    "few_lines",
    "history_card",
    "history_text",
    "is_counted",
    "leftovers",
    "plan_head",
    "plan_text",
    "plans_card",
    "plans_text",
    "removal_text",
    "render_fleet",
    "render_index",
    "render_row_values",
    "render_run",
    "render_table",
    "run_name",
    "runs_card",
    "summary_text",
]
