"""What proves a staged version of Paimon tables: rows as readers see them, and an audit of its bytes."""
