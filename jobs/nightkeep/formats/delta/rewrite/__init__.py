"""What operations do to Delta tables: rules, planning of units, tasks."""
