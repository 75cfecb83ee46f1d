"""How many examples a property test tries: fewer in the quick suite, more in a soak, by NIGHTKEEP_EXAMPLES."""

import os

SHARE = float(os.environ.get("NIGHTKEEP_EXAMPLES", "1"))
FEWEST = 5


def examples(count: int) -> int:
    """`count` is the number for `make test`."""
    return max(FEWEST, round(count * SHARE))
