"""Which files of Iceberg tables are needed, by which versions, and which versions may go."""
