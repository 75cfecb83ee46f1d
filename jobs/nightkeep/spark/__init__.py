"""Spark: its settings, its session, and how tasks and rows travel through it."""
