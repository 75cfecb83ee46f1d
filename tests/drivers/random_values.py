"""A type and a Random -> a value in the drivers' canonical JSON form, odd ones included."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from tests.drivers.canonical import TypeText

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = (datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC))
# What 64 bits of nanoseconds hold: Java goes further, Arrow does not.
_NANO_YEARS = (datetime(1678, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC))

_TEXTS = ("", "a", "A", "ab", "abc", "zebra", "\u00e9t\u00e9", "\u4e2d\u6587", "\U0001f600", "a b", "x" * 40)
# Exact in a FLOAT too, like eighths.
_EXACT = (0.0, 1.5, -2.25, "-0.0", "NaN", "Infinity", "-Infinity")

PRIMITIVES = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(7, 2)",
    "DECIMAL(18, 6)",
    "DECIMAL(38, 10)",
    "CHAR(3)",
    "VARCHAR(40)",
    "STRING",
    "BINARY(4)",
    "VARBINARY(40)",
    "BYTES",
    "DATE",
    "TIME(3)",
    "TIMESTAMP(0)",
    "TIMESTAMP(3)",
    "TIMESTAMP(6)",
    "TIMESTAMP(9)",
    "TIMESTAMP(6) WITH LOCAL TIME ZONE",
)

WIDER = {
    "TINYINT": "SMALLINT",
    "SMALLINT": "BIGINT",
    "INT": "BIGINT",
    "FLOAT": "DOUBLE",
    "DECIMAL(7, 2)": "DECIMAL(20, 4)",
    "DECIMAL(18, 6)": "DECIMAL(30, 6)",
    "CHAR(3)": "STRING",
    "VARCHAR(40)": "STRING",
    "BINARY(4)": "VARBINARY(40)",
    "VARBINARY(40)": "BYTES",
    "TIMESTAMP(0)": "TIMESTAMP(3)",
    "TIMESTAMP(3)": "TIMESTAMP(6)",
}
"""Types that hold every value of another, in Paimon and in Arrow, whose nanoseconds end in 2262."""


def widened(value: Any, type_text: str) -> Any:
    """The canonical form of a value after its column got the wider type `type_text`."""
    name, first, second, _ = TypeText.parse(type_text)
    if value is None:
        return None
    if name == "DECIMAL":
        return format(Decimal(value), f".{second}f")
    if name == "TIMESTAMP":
        whole, _, digits = value.partition(".")
        return f"{whole}.{digits:0<{first}}"
    return value


def odd_text(number: int) -> str:
    """Injective; UTF-8 orders these otherwise than UTF-16 does, and some are longer than key statistics keep."""
    start = ("", "\u00e9", "\uff5e", "\U0001f600", "a", "a\x00", "x" * 140)[number % 7]
    return f"{start}{number:05d}"


def random_value(type_text: str, random: Random) -> Any:
    """Never null. Equal values have equal forms, so forms may be compared, counted and used as keys."""
    name, first, second, local = TypeText.parse(type_text)
    if name == "DECIMAL":
        return _decimal(first, second, random)
    if name == "TIMESTAMP":
        return _timestamp(first, random) + ("Z" if local else "")
    if name in ("CHAR", "BINARY"):
        return _fixed(name, first, random)
    return _PLAIN[name](random)


def kept_in_orc(value: Any, type_text: str) -> Any:
    """A value of the type that ORC files, and Arrow's reader and writer of them, keep as it is.

    Java takes trailing blanks off CHAR values; Arrow holds times near ours, and writes no fractions before 1970.
    """
    if type_text.startswith("CHAR"):
        return value.rstrip(" ")
    if not type_text.startswith("TIMESTAMP"):
        return value
    if not _NANO_YEARS[0].year < int(value[:4]) < _NANO_YEARS[1].year:
        value = f"20{value[2:4]}-01-02{value[10:]}"
    before, dot, fraction = value.partition(".")
    return value if value >= "1970" else f"{before}{dot}{'0' * len(fraction)}"


def nth_value(type_text: str, number: int) -> Any:
    """A value per number, injective and in the type's order for numbers below 100,000: keys, sequences."""
    name, first, second, _ = TypeText.parse(type_text)
    match name:
        case "DECIMAL":
            return format(Decimal(number).scaleb(-second), f".{second}f")
        case "STRING" | "VARCHAR":
            return f"key-{number:05d}"
        case "BYTES" | "VARBINARY":
            return f"{number:06x}"
        case "DATE":
            return (date(2024, 1, 1) + timedelta(days=number)).isoformat()
        case "TIMESTAMP":
            at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
            return at.strftime("%Y-%m-%dT%H:%M:%S") + ("." + "0" * first if first else "")
        case _:
            return number


def _decimal(precision: int, scale: int, random: Random) -> str:
    bound = 10 ** random.randint(1, precision)
    return format(Decimal(random.randrange(-bound + 1, bound)).scaleb(-scale), f".{scale}f")


def _timestamp(precision: int, random: Random) -> str:
    first, last = (int(at.timestamp()) for at in (_NANO_YEARS if precision > 6 else _YEARS))
    second = random.randrange(1_700_000_000) if random.random() < 0.8 else random.randrange(first, last)
    # strftime does not pad years below 1000.
    text = (_EPOCH + timedelta(seconds=second)).replace(tzinfo=None).isoformat()
    return text + (f".{random.randrange(10**precision):0{precision}d}" if precision else "")


def _fixed(name: str, length: int, random: Random) -> str:
    if name == "BINARY":
        return random.randbytes(length).hex()
    return "".join(random.choice("abcXYZ09 \u00e9") for _ in range(length))


def _date(random: Random) -> str:
    near = random.random() < 0.8
    days = random.randrange(20_000) if near else random.randrange(-700_000, 2_900_000)
    return (date(1970, 1, 1) + timedelta(days=days)).isoformat()


def _time(random: Random) -> str:
    at = _EPOCH + timedelta(milliseconds=random.randrange(86_400_000))
    return at.time().isoformat("milliseconds")


def _text(random: Random) -> str:
    return random.choice(_TEXTS) if random.random() < 0.5 else f"text {random.randrange(10**6)}"


def _bytes(random: Random) -> str:
    return random.randbytes(random.randrange(20)).hex()


def _float(random: Random) -> Any:
    return random.choice(_EXACT) if random.random() < 0.3 else random.randrange(-8000, 8000) / 8


_PLAIN: dict[str, Callable[[Random], Any]] = {
    "BOOLEAN": lambda random: random.random() < 0.5,
    "TINYINT": lambda random: random.randrange(-128, 128),
    "SMALLINT": lambda random: random.randrange(-(2**15), 2**15),
    "INT": lambda random: random.randrange(-(2**31), 2**31),
    "BIGINT": lambda random: random.randrange(-(2**63), 2**63),
    "FLOAT": _float,
    "DOUBLE": lambda random: random.choice(_EXACT) if random.random() < 0.3 else random.uniform(-1e9, 1e9),
    "VARCHAR": _text,
    "STRING": _text,
    "VARBINARY": _bytes,
    "BYTES": _bytes,
    "DATE": _date,
    "TIME": _time,
}
