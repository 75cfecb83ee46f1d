#!/bin/sh
# Once a day, remove what is older than NIGHTKEEP_KEEP_DAYS: rows of Airflow's database, and logs of tasks. The time of
# the last success is that of the file, which the health check looks at. Documents and pages stay: they are the history.
set -e
done=${1:-/tmp/housekeeping}
while :; do
    before=$(date --utc --date "${NIGHTKEEP_KEEP_DAYS:-30} days ago" +%Y-%m-%dT%H:%M:%SZ)
    airflow db clean --yes --skip-archive --clean-before-timestamp "$before"
    find "${AIRFLOW_HOME:?}/logs" -type f -mtime "+${NIGHTKEEP_KEEP_DAYS:-30}" -delete
    find "$AIRFLOW_HOME/logs" -mindepth 1 -type d -empty -delete
    touch "$done"
    sleep "${2:-86400}" &
    # A signal ends the wait, not only the sleep.
    wait $!
done
