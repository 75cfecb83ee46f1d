"""Every day at 05:30 UTC, every table of tables.yaml: prove what others committed since the last audit.

Compactions by whoever are compared by content with the versions before them, metadata is held against itself, and no
version may be lost. An audit reads and writes nothing to a table: it needs rights to read alone, and no Spark. A table
whose rows differ fails its task; the page names the version, who made it, and the rows. Tables without a new commit
have one task together.
"""

from nightkeep_airflow.dags import audit

audit(beside=__file__, doc_md=__doc__)
