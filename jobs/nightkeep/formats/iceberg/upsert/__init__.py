"""Batches of changes -> snapshots, as Flink's sink would write them: data, equality deletes, position deletes."""
