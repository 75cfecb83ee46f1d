"""One rewrite of one table: its plan, its stages strung together, and how it ends."""
