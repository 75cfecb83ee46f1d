"""tables.yaml -> the policy in force for each table. Imports nothing heavy: DAGs read it while they parse."""

from nightkeep.policy.explain import explain_text
from nightkeep.policy.layers import EffectivePolicy, Origin, PolicyFile, TablePolicy, groups, load
from nightkeep.policy.overrides import Overrides
from nightkeep.policy.settings import Check, Preset, Settings, json_schema
from nightkeep.policy.units import Window, format_size, parse_size, parse_window

__all__ = [
    "Check",
    "EffectivePolicy",
    "Origin",
    "Overrides",
    "PolicyFile",
    "Preset",
    "Settings",
    "TablePolicy",
    "Window",
    "explain_text",
    "format_size",
    "groups",
    "json_schema",
    "load",
    "parse_size",
    "parse_window",
]
