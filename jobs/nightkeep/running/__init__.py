"""One operation on one table: the stages strung together, and the document that says how it ended."""
