#!/bin/sh
# The command `nightkeep`, with the Python and the code of the image.
exec python -m nightkeep "$@"
