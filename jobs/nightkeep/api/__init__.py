"""What Python calls, the command line and the job scripts among them: a table or a group of tables -> documents.

`nightkeep` has the functions for one table by the names of its commands.
"""
