"""tables.yaml -> the policy in force for each table. Imports nothing heavy, as DAG files import it when parsed."""

from nightkeep.policy.address import format_of, is_address, substitute
from nightkeep.policy.document import Discovery, json_schema
from nightkeep.policy.effective import EffectivePolicy, Pattern, PolicyFile, TablePolicy, UnusableTable
from nightkeep.policy.event_receivers import receivers_of, receivers_of_run
from nightkeep.policy.explain import explain_text
from nightkeep.policy.grouping import groups, left_groups, spark_of
from nightkeep.policy.layers import Origin
from nightkeep.policy.loading import faults_of, load, load_usable
from nightkeep.policy.overrides import Overrides
from nightkeep.policy.settings import Check, Expire, Preset, Settings, Sweep, depends_on_table, suited
from nightkeep.policy.units import (
    Window,
    Windows,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
    parse_window,
)

__all__ = [
    "Check",
    "Discovery",
    "EffectivePolicy",
    "Expire",
    "Origin",
    "Overrides",
    "Pattern",
    "PolicyFile",
    "Preset",
    "Settings",
    "Sweep",
    "TablePolicy",
    "UnusableTable",
    "Window",
    "Windows",
    "depends_on_table",
    "explain_text",
    "faults_of",
    "format_duration",
    "format_of",
    "format_size",
    "groups",
    "is_address",
    "json_schema",
    "left_groups",
    "load",
    "load_usable",
    "parse_duration",
    "parse_size",
    "parse_window",
    "receivers_of",
    "receivers_of_run",
    "spark_of",
    "substitute",
    "suited",
]
