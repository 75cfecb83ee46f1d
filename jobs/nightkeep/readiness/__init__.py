"""What a run needs of this machine, its policy and its stores, looked at before any Spark starts. Opens no table."""
