"""What proves a staged version of Delta tables: rows as readers see them, and an audit of its bytes."""
