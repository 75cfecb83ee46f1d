"""Apache Iceberg tables, format versions 2 and 3, through pyiceberg's catalogs."""
