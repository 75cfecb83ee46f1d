"""Every Sunday at 04:00 UTC, every table of tables.yaml: expire old versions, then sweep files that nothing needs.

What is done is each table's policy: `expire.enabled` expires old versions, `sweep.mode` decides what becomes of orphan
files. By default no version is expired and a sweep only lists, so that a new table costs no more than its listing.
Where a sweep finds orphans, its outcome is skipped, and the reason states their number and size. That is neither a
success, for there is something to decide, nor a failure, for nothing is wrong. What a sweep moved or deleted is
verified: every file of every retained version was looked for afterwards.

One Spark job per group of tables, in the nightly run's pool, so that the two take turns where the pool has one slot.
With more they may meet at one table, and nothing is lost: a sweep judges no file that is younger than the policy's age,
a day at least, so what the nightly run is writing is none of its business; what that run commits meanwhile is found by
another read of the table before anything is moved; and bases of runs that no check has judged yet are not expired.

A missed sweep is not caught up on, and one that starts hours late does nothing: the next one finds the same files.
"""

from nightkeep_airflow.dags import weekly

weekly(beside=__file__, doc_md=__doc__)
