"""One operation on one table: the stages strung together, and the document that states how it ended."""
