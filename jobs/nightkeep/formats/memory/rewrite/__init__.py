"""What operations do to in-memory tables: rules, planning of units, tasks."""
