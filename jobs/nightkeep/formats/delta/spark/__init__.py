"""Versions of Delta tables as Spark DataFrames, for the check after publishing."""
