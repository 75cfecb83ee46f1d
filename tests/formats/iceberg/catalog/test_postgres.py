"""Iceberg tables whose catalog is a Postgres database: whole runs, races of commits, and what is told when it fails."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.drivers.postgres_server import PostgresServer
from tests.formats.iceberg.pyiceberg_tables import (
    assert_one_of_many_wins,
    assert_races_with_pyiceberg_lose_nothing,
    care_for,
    handle,
    made,
    rows,
    upgrade,
)

from nightkeep.errors import AddressError, Unreachable
from nightkeep.model import Outcome

Lake = Callable[..., str]


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    return postgres.database()


@pytest.fixture
def lake(postgres: PostgresServer, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a catalog in the database."""
    for name, value in {"URI": postgres.uri(database), "WAREHOUSE": f"file://{tmp_path}/lake"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{database.upper()}__{name}", value)
    return database


@pytest.mark.few(1)
@pytest.mark.parametrize("version", [2, 3])
def test_a_table_is_maintained(lake: str, tmp_path: Path, version: int) -> None:
    theirs = made(lake, files=4)
    if version == 3:
        upgrade(lake)
    shown = rows(theirs)
    document = care_for(lake, tmp_path / "reports")
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert rows(theirs) == shown
    assert len(list(theirs.load_table("db.events").scan().plan_files())) == 1


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_of_commits_at_once_one_wins(postgres: PostgresServer, lake: str, isolation: str) -> None:
    made(lake)
    postgres.execute(f"ALTER DATABASE {lake} SET default_transaction_isolation = '{isolation}'")
    assert_one_of_many_wins(lake)


def test_races_with_pyiceberg_lose_nothing(lake: str) -> None:
    assert_races_with_pyiceberg_lose_nothing(lake, made(lake))


def test_a_connection_that_the_server_has_ended_is_replaced(postgres: PostgresServer, lake: str) -> None:
    made(lake)
    ours = handle(lake)
    postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{lake}'")
    assert ours.load()[0]["current-snapshot-id"]


def test_what_to_set_is_reported_in_one_sentence(
    postgres: PostgresServer, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failure(uri: str, kind: type[Exception]) -> str:
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{lake.upper()}__URI", uri)
        with pytest.raises(kind) as raised:
            handle(lake)
        assert "\n" not in str(raised.value) and "sqlalche.me" not in str(raised.value)
        return str(raised.value).removeprefix(f"{lake}.db.events: expected ")

    variable = f"of {lake} in .pyiceberg.yaml, or PYICEBERG_CATALOG__{lake.upper()}__URI"
    shown = f"postgresql+psycopg2://nightkeep:***@127.0.0.1:{postgres.port}"
    assert failure(postgres.uri(lake, "another-secret"), AddressError) == (
        f'access to {shown}/{lake}, found password authentication failed for user "nightkeep"; set user and password '
        f"in uri {variable}"
    )
    assert failure(postgres.uri("nowhere"), AddressError).startswith(
        f"a database with Iceberg's tables at {shown}/nowhere, found "
    )
    # Nobody has made a catalog in it, and looking makes none.
    assert 'relation "iceberg_tables" does not exist; set uri' in failure(postgres.uri(lake), AddressError)
    closed = postgres.uri(lake).replace(str(postgres.port), "1")
    assert failure(closed, Unreachable) == (
        f"an answer of postgresql+psycopg2://nightkeep:***@127.0.0.1:1/{lake}, found connection refused; start it, or "
        f"set uri {variable}"
    )
