"""Nightly care for lakehouse tables: plan, rewrite, prove, publish, check, report."""

__version__ = "0.1.0"
