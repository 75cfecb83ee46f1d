"""Which files of Delta tables are needed, by which versions, and which versions may go."""
