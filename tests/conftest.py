"""Fixtures every test may ask for."""

from tests.engines.fixtures import paimon_java, pypaimon

__all__ = ["paimon_java", "pypaimon"]
