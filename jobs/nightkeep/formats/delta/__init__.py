"""Delta Lake tables: their log, their data files and deletion vectors, and commits of our own."""
