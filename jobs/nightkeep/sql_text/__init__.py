"""Text that people write as SQL: conditions, statements, queries and literals."""
