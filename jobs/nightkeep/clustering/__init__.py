"""Packing and clustering of data files, for all formats: which files are rewritten, and how their rows move."""
