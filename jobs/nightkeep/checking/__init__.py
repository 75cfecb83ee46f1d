"""The check after a commit: Spark SQL and Great Expectations read the published version on their own."""
