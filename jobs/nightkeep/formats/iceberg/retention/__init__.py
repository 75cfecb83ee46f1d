"""The files that versions of Iceberg tables need, and the versions that may expire."""
