"""$NIGHTKEEP_ADMIN_PASSWORD -> the file that Airflow's simple auth manager reads the admin's password from.

Written at every start of the API server, so that a container made anew has the password of the one before it.
"""

import json
import os
import sys
from pathlib import Path

SHORTEST = 8
DEFAULTS = ("password", "nightkeep", "adminadmin", "admin123", "12345678")


def main() -> int:
    """Exit status 2, and no file, where the password is one that others would guess."""
    password = os.environ.get("NIGHTKEEP_ADMIN_PASSWORD", "")
    if len(password) < SHORTEST or password.lower() in DEFAULTS:
        print(
            f"NIGHTKEEP_ADMIN_PASSWORD: expected at least {SHORTEST} characters and no well-known password, "
            f"found {len(password)} characters",
            file=sys.stderr,
        )
        return 2
    _write(Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]), password)
    return 0


def _write(path: Path, password: str) -> None:
    """Readable by its owner alone from its first byte on."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump({"admin": password}, file)
    temporary.replace(path)


if __name__ == "__main__":
    sys.exit(main())
