"""Which data files are packed or clustered, and how their rows move: one code for all formats that keep such files."""
