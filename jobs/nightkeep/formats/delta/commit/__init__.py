"""Commits to Delta tables: staged first, made visible in one atomic step."""
