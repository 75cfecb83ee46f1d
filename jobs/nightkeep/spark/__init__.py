"""Spark: its settings, its session, tasks and rows on Spark, and what all formats' views on Spark share."""
