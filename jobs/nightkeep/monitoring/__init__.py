"""Stored documents -> numbers for monitoring: a text in Prometheus' format, and the figures of one run."""
