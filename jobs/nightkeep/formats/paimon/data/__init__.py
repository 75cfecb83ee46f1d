"""Data files of Paimon tables: columns, statistics, Parquet reading and writing."""
