"""What operations do to Paimon tables: rules, planning of units, tasks."""
