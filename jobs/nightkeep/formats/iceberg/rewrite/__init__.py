"""What operations do to Iceberg tables: rules, planning of units, tasks."""
