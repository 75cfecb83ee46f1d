"""The log of a Delta table kept short: checkpoints of its versions, and what they replace."""
