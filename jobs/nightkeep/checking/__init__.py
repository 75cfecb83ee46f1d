"""A published version -> a verdict by Spark SQL and Great Expectations, without the code that wrote it."""
