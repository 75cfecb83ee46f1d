"""Text of an OPTIMIZE statement -> Statement. Pure. The grammar is that of Delta Lake:

OPTIMIZE ('path' | delta.`path` | [catalog.][schema.]name) [FULL] [WHERE condition] [ZORDER BY (a, b) | ZORDER BY a, b]

Keywords may be in any case. Names may have backquotes. Comments and a semicolon at the end are allowed
(DeltaSqlBase.g4, rule optimizeTable).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NoReturn

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from nightkeep.errors import UsageError
from nightkeep.model.dotted import join_name
from nightkeep.policy.address import FORMATS, is_address

# sqlglot takes a statement that starts with OPTIMIZE for an opaque command; with a token before it, it does not.
_BEFORE: Final = "("


@dataclass(frozen=True, slots=True)
class Statement:
    """The content of a statement. No `columns` means that files are only packed, whatever the policy's clustering.

    `table` is a name of the policy file or an address. `where` is the condition as written. `columns` are those of
    ZORDER BY, with dots for fields of structs.
    """

    table: str
    where: str | None
    columns: tuple[str, ...]
    full: bool


def parse_statement(text: str) -> Statement:
    """The one statement of `text`. Raises UsageError stating what was expected, what was found, and where."""
    words = _Words(text)
    if not words.take("OPTIMIZE"):
        words.wrong("OPTIMIZE")
    table = _table(words)
    full = words.take("FULL")
    where = _condition(words) if words.take("WHERE") else None
    columns = _columns(words) if words.take("ZORDER") else ()
    expected = _rest(full=full, where=where, columns=columns)
    while words.take(";"):
        expected = "the end"
    if words.token is not None:
        words.wrong(expected)
    return Statement(table, where, columns, full)


class _Words:
    """A position in the tokens of a text, and the ways to move it forward."""

    def __init__(self, text: str) -> None:
        self._text = _BEFORE + text
        try:
            self._tokens = sqlglot.tokenize(self._text, read="spark")[1:]
        except TokenError as failure:
            raise UsageError(f"statement: expected every quote and comment closed, found one open: {text}") from failure
        self._next = 0

    @property
    def token(self) -> Token | None:
        """The next token; None at the end."""
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    @property
    def shown(self) -> str:
        """The next token as written; empty at the end."""
        return "" if self.token is None else self.written(self.token, self.token)

    def written(self, first: Token, last: Token) -> str:
        """The text from one token to another, both included."""
        return self._text[first.start : last.end + 1]

    def ahead(self, *words: str) -> bool:
        """Whether these keywords or signs come next. A quoted name is neither."""
        coming = self._tokens[self._next : self._next + len(words)]
        return tuple(self.written(token, token).upper() for token in coming) == words

    def take(self, *words: str) -> bool:
        """Step over these keywords or signs if they come next."""
        is_ahead = self.ahead(*words)
        self._next += len(words) if is_ahead else 0
        return is_ahead

    def step(self) -> Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def wrong(self, expected: str) -> NoReturn:
        start = len(self._text.rstrip()) if self.token is None else self.token.start
        before = self._text[len(_BEFORE) : start]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        found, advice = self.shown or "the end", _ADVICE.get(self.shown.upper(), "")
        raise UsageError(f"statement, line {line}, column {column}: expected {expected}, found {found}{advice}")


def _table(words: _Words) -> str:
    path = _path(words)
    if path is not None:
        return path if is_address(path) else f"delta:{path}"
    expected = "a table: a name, 'path' or delta.`path`"
    if words.ahead("WHERE"):
        words.wrong(expected)
    first, *others = parts = _name(words, expected)
    if first.lower() not in FORMATS or not others:
        return ".".join(parts)
    if first.lower() == "iceberg" and len(others) > 1:
        return f"iceberg:{others[0]}/{join_name(others[1:])}"
    # With three or more parts, the first is a catalog that has the name of a format.
    return f"{first.lower()}:{others[0]}" if len(others) == 1 else ".".join(parts)


def _path(words: _Words) -> str | None:
    """The joined text of the next string literals; None if there is none."""
    path = None
    while words.token is not None and words.token.token_type is TokenType.STRING:
        path = (path or "") + words.step().text
    if path is not None and not path.strip():
        words.wrong("a path in the quotes before")
    return path


def _name(words: _Words, expected: str) -> tuple[str, ...]:
    parts = [_identifier(words, expected)]
    while words.take("."):
        parts.append(_identifier(words, f"a name after {'.'.join(parts)}."))
    return tuple(parts)


def _identifier(words: _Words, expected: str) -> str:
    token = words.token
    if token is None or not (token.token_type is TokenType.IDENTIFIER or words.shown.isidentifier()):
        words.wrong(expected)
    words.step()
    return token.text


def _condition(words: _Words) -> str:
    """The text up to ZORDER BY or the end, unchanged. It is checked when it is evaluated."""
    if words.token is None or words.ahead(";") or words.ahead("ZORDER", "BY"):
        words.wrong("a condition after WHERE")
    first = last = words.step()
    while not (words.token is None or words.ahead(";") or words.ahead("ZORDER", "BY")):
        last = words.step()
    return words.written(first, last)


def _columns(words: _Words) -> tuple[str, ...]:
    if not words.take("BY"):
        words.wrong("BY after ZORDER")
    closing = words.take("(")
    columns: list[str] = []
    while True:
        column = ".".join(_name(words, "a column"))
        if column in columns:
            raise UsageError(f"statement: expected different columns in ZORDER BY, found {column} twice")
        columns.append(column)
        if not words.take(","):
            break
    if closing and not words.take(")"):
        words.wrong("a comma or )")
    return tuple(columns)


def _rest(*, full: bool, where: str | None, columns: tuple[str, ...]) -> str:
    if columns:
        return "a comma or the end"
    options = ["FULL"] if not full and where is None else []
    options += ["WHERE"] if where is None else []
    return ", ".join([*options, "ZORDER BY"]) + " or the end"


_ADVICE: Final = {
    # REORG also rewrites files to remove dropped columns; Nightkeep does not.
    "REORG": "; nightkeep run TABLE --operation optimize --max-deleted-ratio 0 --min-file-size 1B purges deleted rows",
    **dict.fromkeys(("-", "/"), "; names with other characters than letters, digits and _ are written in backquotes"),
}
"""The advice for each word or sign that is not accepted."""
