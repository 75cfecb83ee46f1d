"""Commits of all writers against what they state of the rows. Reads only."""
