"""A table or a group of tables -> documents. The functions that Python, the command line and the job scripts call.

The package `nightkeep` has the functions for one table, named like its commands.
"""
