"""Signs of tables of other formats, in folders of tables of every format and in the very same folder."""

import re
from pathlib import Path

import polars as pl
import pytest

from nightkeep.errors import RefusedTable
from nightkeep.protocol.foreign_tables import SIGNS, foreign_patterns, require_one_format
from nightkeep.storage import open_storage

UUID = "0" * 8 + "-0000-0000-0000-" + "0" * 12
NAMES = {
    "_delta_log/00000000000000000000.json": "Delta",
    "_delta_log/_last_checkpoint": "Delta",
    ".hoodie/hoodie.properties": "Hudi",
    ".hoodie/timeline/20261101.commit": "Hudi",
    "metadata/v1.metadata.json": "Iceberg",
    f"metadata/00003-{UUID}.gz.metadata.json": "Iceberg",
    f"metadata/00003-{UUID}.metadata.json.gz": "Iceberg",
    "schema/schema-0": "Paimon",
}
FORMATS = sorted({sign.format for sign in SIGNS})


def found(name: str) -> list[str]:
    return [match[1] for pattern in foreign_patterns() if (match := re.fullmatch(pattern, name))]


def test_every_sign_is_of_a_format_with_an_example() -> None:
    assert {*NAMES.values()} == {*FORMATS}


@pytest.mark.parametrize("home", ["", "db/t"])
@pytest.mark.parametrize("own", FORMATS)
@pytest.mark.parametrize(("name", "format"), NAMES.items())
def test_a_sign_of_another_format_in_the_very_folder_is_refused(
    name: str, format: str, own: str, home: str, tmp_path: Path
) -> None:
    path = tmp_path / home / name
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    storage = open_storage(str(tmp_path))
    if format == own:
        require_one_format("t", storage, home, own={own})
        return
    where = f"{home}/{name}" if home else name
    with pytest.raises(
        RefusedTable, match=f"{re.escape(where)} in its folder is the metadata of a table of {format}'s"
    ):
        require_one_format("t", storage, home, own={own})


def test_what_to_do_names_the_whole_address(tmp_path: Path) -> None:
    (tmp_path / "db/t/_delta_log").mkdir(parents=True)
    (tmp_path / "db/t/_delta_log/00000000000000000000.json").write_text("{}")
    with pytest.raises(RefusedTable, match=f"its address is delta:{re.escape(str(tmp_path))}/db/t;"):
        require_one_format("t", open_storage(str(tmp_path)), "db/t", own={"Iceberg"})


@pytest.mark.parametrize("name", ["metadata/notes.txt", "schema/orders.json", "schema/sub/schema-0", "data/schema-0"])
def test_what_only_looks_like_a_sign_is_none(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text("{}")
    require_one_format("t", open_storage(str(tmp_path)), "", own=())


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        *((f"a=1/u/{name}", "a=1/u") for name in NAMES if "/timeline/" not in name),
        ("u/metadata/version-hint.text", "u"),
        ("u/snapshot/snapshot-7", "u"),
        *((name, None) for name in NAMES),
        ("metadata/version-hint.text", None),
        ("u/metadata/notes.txt", None),
    ],
)
def test_a_sign_makes_a_deeper_folder_another_tables(name: str, folder: str | None) -> None:
    assert found(name) == ([] if folder is None else [folder])
    rust = [pl.Series([name]).str.extract(rf"\A(?:{pattern})\z", 1).item() for pattern in foreign_patterns()]
    assert [each for each in rust if each is not None] == found(name)
