"""What a check is shown whose sums of hashes are blind: rows before a sabotage, and after it, by expectation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.sabotage.equal_sums import FIRST, NUMBER, SECOND, A, B, Hashed, Row

Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class Blinding:
    """Rows of a table whose rows are `hashed` so: those of `one`, of `two` and of `three` add up to nothing."""

    hashed: Hashed

    @property
    def one(self) -> Rows:
        return self.hashed.nothing(1 << 20)

    @property
    def two(self) -> Rows:
        return self.hashed.nothing(2 << 20)

    @property
    def three(self) -> Rows:
        return self.hashed.nothing(3 << 20)

    @property
    def pair(self) -> tuple[Row, Row]:
        """Of one hash with seed B."""
        row = {NUMBER: 4 << 20, FIRST: self.one[0][FIRST] + 1, SECOND: 4711}
        return row, self.hashed.alike(row, 5 << 20, seed=B)

    @property
    def doubled(self) -> Rows:
        """Before a change of rows without keys."""
        row, other = self.pair
        return [*self.one, *self.one, *self.two, row, row, other]

    @property
    def single(self) -> Rows:
        """Before a change of rows with keys."""
        return [*self.one, *self.two, self.pair[0]]

    def like(self, row: Row, *, seed: int) -> Row:
        """Other values of the same number, with the same hash of one seed."""
        return self.hashed.alike(row, row[NUMBER], seed=seed)


COUNT = "the number of rows is the same"
FIRST_SUM = "the first sum of row hashes is the same"
SECOND_SUM = "the second sum of row hashes is the same"
ORDER = "rows are in the same order"
MISSING, EXTRA = "no row is missing", "no row is extra"
KEYS = "no key has more than one row"
TOLD_ROWS = "metadata counts the rows that are there"
SOUND = "every row is live and stored under its own key"
STATISTICS = "statistics cover every value"
CHANGES = "streaming readers receive every change"
Content = Callable[[Blinding], Rows]
CHANGED: Mapping[str, tuple[str, Content]] = {
    COUNT: ("16 rows are there twice", lambda b: [*b.doubled, *b.two]),
    FIRST_SUM: ("one row less often, one more", lambda b: [*b.one, *b.one, *b.two, *b.pair, b.pair[1]]),
    SECOND_SUM: ("one row less often, one more", lambda b: [*b.one, *b.one[1:], *b.two, b.two[0], b.pair[0], *b.pair]),
    MISSING: ("copies of 16 rows in place of 16 others", lambda b: [*b.one, *b.one, *b.one, b.pair[0], *b.pair]),
    EXTRA: ("16 new rows in place of copies", lambda b: [*b.one, *b.three, *b.two, b.pair[0], *b.pair]),
}
"""Of rows without keys: the content after the sabotage."""
CHANGED_BY_KEY: Mapping[str, tuple[str, Content]] = {
    FIRST_SUM: ("values of a row", lambda b: [*b.one, *b.two, b.like(b.pair[0], seed=B)]),
    SECOND_SUM: ("values of a row", lambda b: [b.like(b.one[0], seed=A), *b.one[1:], *b.two, b.pair[0]]),
    MISSING: ("16 rows are dropped", lambda b: [*b.one, b.pair[0]]),
    EXTRA: ("16 rows are added", lambda b: [*b.single, *b.three]),
    KEYS: ("16 rows are there twice", lambda b: [*b.single, *b.two]),
}
"""Of rows with keys."""
