"""A run over many tables: its tables and their order, how each ended, its page and its messages."""
