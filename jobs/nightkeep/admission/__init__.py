"""Whether a table may be worked on now, and what is known of it before anything is read of its data."""
