"""What proves a staged version of in-memory tables: rows as readers see them, and an audit of its bytes."""
