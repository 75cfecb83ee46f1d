"""Several tables in one Spark session -> a document for each, whatever happens to the others."""
