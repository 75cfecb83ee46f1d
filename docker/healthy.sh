#!/bin/sh
# Whether a URL is answered with a success, and, if a text is given, whether the answer has it. Blanks are left out.
#
#   nightkeep-healthy http://localhost:8974/health
#   nightkeep-healthy http://apiserver:8080/api/v2/monitor/health '"dag_processor":{"status":"healthy"'
set -e
# Not in one pipe: its status would be that of the last program.
answer=$(curl --fail --silent --show-error --max-time 5 "$1")
answer=$(printf %s "$answer" | tr -d '[:space:]')
case "$answer" in *"$2"*) exit 0 ;; esac
echo "$1: expected $2, found $answer" >&2
exit 1
