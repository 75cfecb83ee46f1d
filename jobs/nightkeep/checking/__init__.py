"""The check after publishing: Spark SQL and Great Expectations read the published version by their own means."""
