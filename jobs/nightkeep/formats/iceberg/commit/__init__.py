"""Commits to Iceberg tables: staged first, made visible in one atomic step."""
