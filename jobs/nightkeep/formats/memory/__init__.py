"""A table in this process's memory: the reference implementation of the protocol."""
