"""Data files of Iceberg tables: columns, statistics, Parquet reading and writing."""
