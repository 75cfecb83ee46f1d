"""Nightkeep inside Airflow: operators for its jobs, the tasks the DAGs share, and the report pages."""
