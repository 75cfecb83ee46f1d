"""Values check themselves once, at birth, and say what they are."""

import dataclasses
import pickle
from dataclasses import replace
from typing import get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep import model
from nightkeep.model import (
    Address,
    Candidate,
    Fingerprint,
    Mismatch,
    Operation,
    Outcome,
    Plan,
    Run,
    TaskCost,
    UnitKey,
    UnitProof,
    Verified,
    VerifyLevel,
    VersionIdentity,
    run_token,
)
from nightkeep.stages.publish import publish

TABLE = Address("paimon", "/warehouse/shop.db/orders", "shop.orders")
ONE, TWO = UnitKey("day=1", 0), UnitKey("day=2", 0)
ROWS = Fingerprint(3, 1, 2)
COST = TaskCost(1.0, 1.0, 1, "here:1")
BASE = VersionIdentity(7, "0a", "1b")
PLAN = Plan(TABLE, Operation.UPGRADE, BASE, ())
CANDIDATE = Candidate(TABLE, 8, BASE, "staged", ("staged",), (ONE, TWO))


def proof(key: UnitKey, candidate: Fingerprint = ROWS, *faults: str) -> UnitProof:
    return UnitProof(key, ROWS, candidate, faults, COST)


class TestVerified:
    def test_exists_when_every_unit_is_proven(self) -> None:
        assert Verified(PLAN, CANDIDATE, (), (proof(ONE), proof(TWO)), VerifyLevel.FULL).candidate == CANDIDATE

    @pytest.mark.parametrize(
        "proofs",
        [
            pytest.param((proof(ONE),), id="a unit without a proof"),
            pytest.param((), id="no proof at all"),
            pytest.param((proof(ONE), proof(TWO, Fingerprint(3, 1, 3))), id="a row that differs"),
            pytest.param((proof(ONE), proof(TWO, Fingerprint(2, 1, 2))), id="a row that is missing"),
            pytest.param((proof(ONE), proof(TWO, ROWS, "keys do not ascend")), id="equal rows in a faulty file"),
        ],
    )
    def test_cannot_be_made_of(self, proofs: tuple[UnitProof, ...]) -> None:
        with pytest.raises(ValueError, match=r"shop\.orders: expected every unit proven, found .*day=2"):
            Verified(PLAN, CANDIDATE, (), proofs, VerifyLevel.FULL)

    def test_cannot_be_made_by_changing_one(self) -> None:
        good = Verified(PLAN, CANDIDATE, (), (proof(ONE), proof(TWO)), VerifyLevel.FULL)
        with pytest.raises(ValueError, match="expected every unit proven"):
            replace(good, proofs=good.proofs[:1])
        with pytest.raises(dataclasses.FrozenInstanceError):
            good.proofs = ()  # type: ignore[misc]

    def test_is_all_that_publish_takes(self) -> None:
        assert get_origin(get_type_hints(publish)["verified"]) is Verified
        assert not issubclass(Mismatch, Verified)


class TestOutcome:
    def test_order_is_from_mildest_to_worst(self) -> None:
        assert [outcome.value for outcome in Outcome] == [
            "unchanged",
            "skipped",
            "verified",
            "refused",
            "conflicted",
            "mismatch",
            "failed",
        ]

    def test_worst_of_none_is_unchanged(self) -> None:
        assert Outcome.worst([]) is Outcome.UNCHANGED

    @given(st.lists(st.sampled_from(Outcome), min_size=1))
    def test_worst_is_one_of_them_and_none_is_worse(self, outcomes: list[Outcome]) -> None:
        order, worst = list(Outcome), Outcome.worst(outcomes)
        assert worst in outcomes
        assert all(order.index(outcome) <= order.index(worst) for outcome in outcomes)

    def test_exit_statuses_are_the_contract_of_the_command(self) -> None:
        assert {outcome: outcome.exit_status for outcome in Outcome} == {
            Outcome.UNCHANGED: 0,
            Outcome.SKIPPED: 0,
            Outcome.VERIFIED: 0,
            Outcome.FAILED: 1,
            Outcome.REFUSED: 3,
            Outcome.CONFLICTED: 4,
            Outcome.MISMATCH: 5,
        }


fingerprints = st.builds(Fingerprint, st.integers(0, 2**40), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))


class TestFingerprint:
    @given(fingerprints, fingerprints, fingerprints)
    def test_adds_and_subtracts_in_any_order(self, a: Fingerprint, b: Fingerprint, c: Fingerprint) -> None:
        assert a + b == b + a
        assert (a + b) + c == a + (b + c)
        assert a + b - b == a
        assert a + Fingerprint() == a

    @given(fingerprints)
    def test_text_is_read_back(self, found: Fingerprint) -> None:
        assert Fingerprint.parse(str(found)) == found

    @pytest.mark.parametrize("text", ["", "1:2:3", "x:0000000000000000:0000000000000000", "1:" + "0" * 16])
    def test_other_text_is_named(self, text: str) -> None:
        with pytest.raises(ValueError, match="fingerprint"):
            Fingerprint.parse(text)


class TestUnitKey:
    @pytest.mark.parametrize(
        ("key", "text"),
        [
            (UnitKey("dt=2026-11-01", 3), "dt=2026-11-01/bucket-3"),
            (UnitKey("dt=2026-11-01"), "dt=2026-11-01"),
            (UnitKey("", 0), "bucket-0"),
            (UnitKey(""), "table"),
        ],
    )
    def test_reads_like_a_path(self, key: UnitKey, text: str) -> None:
        assert str(key) == text


def test_a_token_is_the_runs_alone_and_fits_a_file_name() -> None:
    tokens = [run_token(run_id, Operation.UPGRADE) for run_id in ("night 1", "night 1", "night 2")]
    assert tokens[0] == tokens[1] != tokens[2]
    assert run_token("night 1", Operation.OPTIMIZE) not in tokens
    assert all(len(token) == 16 and int(token, 16) for token in tokens)


def test_values_are_frozen_have_slots_and_pickle() -> None:
    values = [kind for kind in vars(model).values() if dataclasses.is_dataclass(kind)]
    assert len(values) > 10
    for kind in values:
        assert kind.__dataclass_params__.frozen, kind  # type: ignore[attr-defined]
        assert "__slots__" in vars(kind), kind
    for value in (TABLE, CANDIDATE, proof(ONE), Run("r", "t", "a", 1), PLAN):
        assert pickle.loads(pickle.dumps(value)) == value
