"""Several tables in one Spark session: each ends with a document of its own, whatever happens to the others."""
