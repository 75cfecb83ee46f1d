"""Which statistics a file's metadata states of which column, by the table's options."""

import pytest

from nightkeep.formats.paimon.data.file_statistics import level_stats_mode, stats_modes
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.kernels.stats import DEFAULT_MODE, KEY_MODE, Detail, StatsMode

NONE, COUNTS = StatsMode(Detail.NONE), StatsMode(Detail.COUNTS)


@pytest.mark.parametrize(
    ("options", "modes"),
    [
        ({}, (DEFAULT_MODE, DEFAULT_MODE, DEFAULT_MODE)),
        ({"metadata.stats-mode": "counts", "metadata.stats-mode.per.level": "5:none"}, (NONE, NONE, NONE)),
        ({"metadata.stats-keep-first-n-columns": "2"}, (DEFAULT_MODE, DEFAULT_MODE, NONE)),
        ({"metadata.stats-keep-first-n-columns": "1", "fields.b.stats-mode": "counts"}, (DEFAULT_MODE, NONE, COUNTS)),
        ({"data-file.thin-mode": "true", "metadata.stats-mode": "none"}, (KEY_MODE, NONE, NONE)),
        ({"data-file.thin-mode": "true", "metadata.stats-keep-first-n-columns": "1"}, (KEY_MODE, DEFAULT_MODE, NONE)),
        ({"data-file.thin-mode": "true", "fields.k.stats-mode": "counts"}, (COUNTS, DEFAULT_MODE, DEFAULT_MODE)),
        ({"data-file.thin-mode": "true", "file.format": "avro", "metadata.stats-mode": "none"}, (NONE, NONE, NONE)),
    ],
)
def test_modes_are_those_of_paimon(options: dict[str, str], modes: tuple[StatsMode, ...]) -> None:
    """As StatsCollectorFactories.java has them: keys of thin files keep statistics, and do not count."""
    fields = tuple(PaimonField(n, name, parse_type("INT")) for n, name in enumerate("kab"))
    schema = PaimonSchema(0, fields, (), ("k",), options)
    found = stats_modes(schema, level_stats_mode(schema, 5), file_format=options.get("file.format", "parquet"))
    assert found == modes
