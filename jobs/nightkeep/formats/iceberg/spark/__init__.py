"""Versions of Iceberg tables as Spark DataFrames, for the check after publishing."""
