"""No credential leaves the process: whatever is given as one is in no output of any command."""

import json
import logging
import sys
import time
from pathlib import Path

import pytest

from nightkeep.commands.app import main
from nightkeep.commands.job import run_job, sweep_job
from nightkeep.errors import AddressError, CorruptMetadata, UsageError
from nightkeep.formats.delta.metadata.actions import parse_object
from nightkeep.formats.iceberg.metadata.avro import Names, read_records
from nightkeep.formats.iceberg.metadata.table_metadata import decode
from nightkeep.redaction import _LEARNT, HIDDEN, learn, redact, redacted, redacted_output

S = "pL4nted/s+cr3t"

SECRET = [
    f"postgresql://night:{S}@db.example:5432/catalog",
    f"postgresql+psycopg2://night:{S}@db.example/catalog?sslmode=require",
    "postgresql://night:p%4Cs@db/c and postgresql://o:p%4Cs@db/c",
    f"s3://AKIAEXAMPLE:{S}@bucket/t",
    "s3a://p%4Cs@bucket/t",
    f"https://{S.replace('/', '-')}@git.example/x",
    f"could not open 's3n://k:{S}@b/t': denied",
    f"http://u:{S}@h:8181/v1?warehouse=x",
    f"https://acct.example/c/t?sv=2020&sig={S}&se=1",
    f"https://h/x?token={S}",
    f"jdbc:x://h/db;user=a;password={S};b=1",
    f"password={S}",
    f"s3.secret-access-key={S}",
    f"PYICEBERG_CATALOG__PROD__S3__SECRET_ACCESS_KEY={S}",
    f"{{'s3.access-key-id': '{S}', 'uri': 'x'}}",
    f'{{"client_secret": "{S}"}}',
    f"Authorization: Bearer {S}abcdefgh",
    f"AccountKey={S}==;EndpointSuffix=core",
    f"connection to (user=a password='{S}') failed",
]


@pytest.mark.parametrize("text", SECRET)
def test_what_is_a_credential_by_its_place_is_hidden(text: str) -> None:
    found = redact(text)
    assert S not in found and "cr3t" not in found and "p%4Cs" not in found and HIDDEN in found
    assert redact(found) == found


PLAIN = [
    "/lake/shop.db/orders/dt=2026-11-01/part-0.parquet",
    "s3://bucket/dt=2026-11-01 00:00:00/a@b.parquet",
    "hdfs://name:8020/user/a@b/t",
    "abfss://container@account.dfs.core.windows.net/t",
    "file:///a:b@c",
    "token=abc/part-0.parquet",
    "data/token=abc/part-0.parquet",
    "s3://b/t/secret=x/y",
    "password/x=1",
    "iceberg:prod/shop.orders",
    "paimon:/x$branch_dev",
    "12:30 a@b",
    "expected a token, found none",
    "http://localhost:9000/bucket/x@y",
    "mail a@b.example",
    "postgresql://db.example:5432/c",
    "token: expected one of",
    "a / b : c @ d",
    "tokens=5",
    "monkey=1",
]


@pytest.mark.parametrize("text", PLAIN)
def test_an_ordinary_path_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


LONG = {
    "one word": "KeyError: " + "x" * 1_000_000,
    "names before a secret's": "x-" * 100_000 + "password = {}",
    "signs before a secret's": "-" * 200_000 + "password = {}",
    "a name of many secrets'": "?" + "token-" * 50_000 + "={}",
    "such a name in quotes": "'" + "secret." * 50_000 + "' : '{}'",
}


@pytest.mark.parametrize("kind", LONG)
def test_a_long_word_is_read_once(kind: str) -> None:
    started = time.process_time()
    assert redact(LONG[kind].format(S)) == LONG[kind].format("***")
    assert time.process_time() - started < 10


def test_a_secret_that_the_process_was_given_is_hidden_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "postgresql://n:from%40environ@db/c")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "azures-own-value")
    monkeypatch.setenv("PLAIN_VALUE", "not-a-secret-at-all")
    learn({"s3.session-token": "of-a-catalog", "uri": "http://u:in-its-uri@h", "type": "sql", "token": "abc"})
    text = "from%40environ from@environ azures-own-value not-a-secret-at-all of-a-catalog in-its-uri sql abc"
    assert redact(text) == "*** *** *** not-a-secret-at-all *** *** sql abc"
    _LEARNT.clear()


def test_documents_are_redacted_and_still_known_by_what_they_are_of() -> None:
    document = {
        "units": [{"partition": "token=abc", "reason": f"password={S}"}],
        "password": "x",
        "rows": 3,
        "none": None,
        "found": [f"s3://a:{S}@b", True],
    }
    assert redacted(document) == {
        "units": [{"partition": "token=abc", "reason": "password=***"}],
        "password": "***",
        "rows": 3,
        "none": None,
        "found": ["s3://***@b", True],
    }


def test_errors_are_redacted_when_they_are_made() -> None:
    address = f"postgresql://u:{S}@h/c"
    for failure in (UsageError(address), CorruptMetadata(address, address, address), AddressError(f"a\n{address}")):
        assert S not in str(failure) and S not in repr(failure) and S not in str(vars(failure))


def test_logs_and_tracebacks_are_redacted(capsys: pytest.CaptureFixture[str]) -> None:
    with redacted_output():
        handler = logging.StreamHandler(sys.stderr)
        logger = logging.Logger("redaction")
        logger.addHandler(handler)
        try:
            raise ValueError(f"http://u:{S}@h")
        except ValueError as failure:
            logger.exception("password=%s", S)
            sys.excepthook(ValueError, failure, failure.__traceback__)
        print(f"token: https://h?token={S}")
    said = capsys.readouterr()
    assert "cr3t" not in said.out + said.err and said.err.count("ValueError: http://***@h") == 2


COMMANDS = [
    ["plan"],
    ["run"],
    ["sweep"],
    ["sweep", "--delete"],
    ["expire"],
    ["expire", "--delete"],
    ["advise"],
    ["explain"],
    ["history"],
    ["release"],
    ["check"],
    ["restore", "run-1"],
    ["diff", "--version", "1", "--other", "2"],
    ["delete", "--rows-where", "a = 1"],
]
ADDRESSES = [
    "paimon:s3://AKIA:{s}@bucket/t",
    "delta:s3a://{s}@bucket/t",
    "delta:gs://{s}@bucket/t",
    "paimon:http://u:{s}@h/t",
]


def _outputs(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr()
    written = [path.read_text(errors="replace") for path in (folder / "reports").rglob("*") if path.is_file()]
    return "\n".join([said.out, said.err, *written])


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_reports_the_credentials_of_an_address(
    command: list[str], address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verb, *rest = command
    table, reports = address.format(s="Zq7planted"), ["--reports", str(tmp_path / "reports")]
    with pytest.raises(SystemExit) as ended:
        main([verb, table, *rest, *(reports if verb not in ("explain", "diff", "advise") else [])])
    assert ended.value.code == 2
    said = _outputs(tmp_path, capsys)
    assert "Zq7planted" not in said and "AKIA" not in said
    assert "user info" in said


CATALOGS = {
    "a database that is none": {"URI": "postgresql://night:{s}@127.0.0.1:1/c"},
    "a dialect that is none": {"URI": "nosuch://night:{s}@127.0.0.1/c"},
    "a server that is not there": {"URI": "http://night:{s}@127.0.0.1:1/", "TOKEN": "{s}"},
    "a type that is none": {"TYPE": "nosuch", "URI": "x://a:{s}@h", "S3__SECRET_ACCESS_KEY": "{s}"},
    "a credential": {"URI": "http://127.0.0.1:1/", "CREDENTIAL": "id:{s}", "OAUTH2_SERVER_URI": "http://127.0.0.1:1/o"},
}


@pytest.mark.few(2)
@pytest.mark.in_turn("catalog")
@pytest.mark.slow
@pytest.mark.parametrize("catalog", CATALOGS)
@pytest.mark.parametrize("command", ["plan", "run", "sweep", "expire", "job"])
def test_no_command_reports_the_credentials_of_a_catalog(
    command: str, catalog: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in CATALOGS[catalog].items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LEAKY__{key}", value.format(s="Zq7planted"))
    reports = tmp_path / "reports"
    if command == "job":
        (tmp_path / "tables.yaml").write_text("version: 1\ntables:\n  - name: t\n    table: iceberg:leaky/db.t\n")
        given = ["--policy", str(tmp_path / "tables.yaml"), "--tables", "t", "--run-id-prefix", "x"]
        reports.mkdir()
        for job in (lambda argv: run_job(argv, operations=()), sweep_job):
            job([*given, "--reports", str(reports), "--result", str(reports / "result.json")])
        assert json.loads((reports / "result.json").read_text())[0]["reason"]
        main_arguments = ["report", "--reports", str(reports)]
    else:
        main_arguments = [command, "iceberg:leaky/db.t", "--reports", str(reports)]
    try:
        main(main_arguments)
    except SystemExit as ended:
        assert ended.code != 0 or command == "job"
    said = _outputs(tmp_path, capsys)
    assert said.strip() and "Zq7planted" not in said


def test_no_message_quotes_a_file_that_is_none_of_a_table(tmp_path: Path) -> None:
    """What a commit, a checkpoint or a manifest list links to may be anybody's file."""
    secret = "hunter2 is the password of the admin, and this is a file of somebody else's"
    reads = (
        lambda: parse_object(secret, subject="a log"),
        lambda: parse_object(json.dumps([secret]), subject="a log"),
        lambda: decode(secret.encode(), subject="a table's metadata"),
        lambda: decode(json.dumps([secret]).encode(), subject="a table's metadata"),
        lambda: read_records(secret.encode(), Names({}, {}), subject="a manifest"),
    )
    for read in reads:
        with pytest.raises(CorruptMetadata) as refusal:
            list(read())  # type: ignore[call-overload]
        assert not any(word in str(refusal.value) for word in ("hunt", "password", "admin"))
