"""What Airflow shows of this package among its providers. Imports nothing."""

from __future__ import annotations


def get_provider_info() -> dict[str, object]:
    """By the schema `provider_info.schema.json` of Airflow. Jobs are submitted through Spark's own connection type."""
    name = "Nightkeep"
    return {
        "package-name": "nightkeep-airflow",
        "name": name,
        "description": "Nightly maintenance of lakehouse tables, with proof.",
        "operators": [{"integration-name": name, "python-modules": ["nightkeep_airflow.operators"]}],
        "extra-links": ["nightkeep_airflow.links.ReportLink"],
    }
