#!/bin/sh
# Containers run under the id that owns the tables; Java's login and Airflow both want it to have a name.
set -e
if ! id -un >/dev/null 2>&1; then
    echo "nightkeep:x:$(id -u):0::${HOME}:/bin/sh" >>/etc/passwd
fi
exec tini -- "$@"
