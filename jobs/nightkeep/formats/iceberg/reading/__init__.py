"""A version of a table for people who read it: views, bounds of files, rows."""
