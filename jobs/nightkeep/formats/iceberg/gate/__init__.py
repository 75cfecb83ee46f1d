"""What proves a staged version of Iceberg tables: rows as readers see them, and an audit of its bytes."""
