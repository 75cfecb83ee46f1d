"""Several tables in one Spark session, at work at once, and what is left to do after its process died."""
