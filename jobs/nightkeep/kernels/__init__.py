"""Arrow and NumPy in, Arrow and NumPy out. No path, no Spark, no format beyond what a docstring names."""
