"""Which data files are packed or clustered, and how their rows move: one code for every format that keeps such files."""
