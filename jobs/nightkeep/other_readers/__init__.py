"""Rows of a version as another engine reads them, in a Python of its own, compared with what Nightkeep reads."""
