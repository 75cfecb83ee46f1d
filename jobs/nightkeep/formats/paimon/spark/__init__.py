"""Versions of Paimon tables as Spark DataFrames, for the check after publishing."""
