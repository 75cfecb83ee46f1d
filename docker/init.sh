#!/bin/sh
# Prepare Airflow's database. Safe to run at every start: a pool that is there keeps the slots it was given.
set -e
airflow db migrate
if ! airflow pools get nightkeep_spark >/dev/null; then
    airflow pools set nightkeep_spark 1 'Spark jobs at a time; each has a driver in the scheduler'
fi
