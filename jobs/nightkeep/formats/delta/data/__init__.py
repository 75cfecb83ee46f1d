"""Data files of Delta tables: columns, statistics, Parquet reading and writing."""
