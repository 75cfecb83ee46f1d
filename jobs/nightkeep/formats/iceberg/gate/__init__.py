"""The proof of a staged version of an Iceberg table: rows as readers see them, and an audit of the staged bytes."""
