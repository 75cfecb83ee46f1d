"""Catalogs that hold Iceberg tables, through pyiceberg."""
