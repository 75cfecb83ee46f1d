"""Rows of any table for people: a version planned, pruned and read as Arrow, or as a data source of Spark."""
