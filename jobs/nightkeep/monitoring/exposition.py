"""Families of samples -> the text format of Prometheus, version 0.0.4, for node_exporter's textfile collector.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from nightkeep.monitoring.families import Family
from nightkeep.redaction import redact


def exposition(families: Iterable[Family]) -> str:
    """The text, which ends with a newline. A family without samples is left out."""
    return "".join(f"{line}\n" for family in families if family.samples for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {_escaped(family.help)}"
    yield f"# TYPE {family.name} gauge"
    for sample in family.samples:
        yield f"{family.name}{_labels(sample.labels)} {_number(sample.value)}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{_quoted(redact(value))}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return repr(value) if math.isfinite(value) else "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
