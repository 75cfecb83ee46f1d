"""SQL text of people (conditions, statements, queries, literals) -> values."""
