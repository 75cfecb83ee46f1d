"""Folders of a POSIX file system."""
