"""Operations on Iceberg tables: rules, planning of units, tasks."""
