"""Commits to tables in memory: staged first, made visible in one atomic step."""
