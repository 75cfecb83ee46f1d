"""Commits to Paimon tables: staged first, made visible in one atomic step."""
