"""Every kind of sabotage that tests define, and how each is done: where the gate decides, or where it sleeps.

A kind is defined by the test that holds the gate to it. Here it only gets a name and a table.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from inspect import isfunction
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.engines.paimon import test_compactions, test_elements, test_full_changelogs, test_merges
from tests.formats.delta import clustered_sabotage as clustered
from tests.formats.delta import variant_sabotage as variants
from tests.formats.delta.gate import test_sabotage as delta
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.sabotage import Staged as DeltaStaged
from tests.formats.iceberg.gate import test_orc_sabotage, test_order_audit, test_variant_audit
from tests.formats.iceberg.gate import test_sabotage as iceberg
from tests.formats.iceberg.rewrite import test_respec
from tests.formats.iceberg.runs import Kept, address, opened
from tests.formats.iceberg.sabotage import Staged as IcebergStaged
from tests.formats.iceberg.sabotage import converted
from tests.formats.paimon.appended import operate
from tests.formats.paimon.contents import SAMPLES
from tests.formats.paimon.gate import test_append_sabotage, test_changes, test_sabotage
from tests.formats.paimon.gate.test_sabotage import ONE_DAY, before_the_gate
from tests.formats.paimon.rewrite.append import test_delete, test_update
from tests.formats.paimon.upgrade import optimize, upgrade
from tests.sabotage.bases import Bases, Published

from nightkeep.formats.iceberg.format import IcebergTable
from nightkeep.formats.paimon.rewrite import rewrite
from nightkeep.formats.paimon.rewrite.element_fold import ElementFold
from nightkeep.model import Address, Candidate, Operation, Outcome, Plan, Verified, VerifyLevel
from nightkeep.records import RunDocument

Gate = Callable[[VerifyLevel], bool]
"""Whether the gate stops it."""
Publish = Callable[[], Published]


@dataclass(frozen=True, slots=True)
class Kind:
    """`prepared`: a fresh table in a folder -> what is done to it."""

    group: str
    name: str
    prepared: Callable[[Bases, Path], tuple[Gate, Publish]]


def named(act: Any) -> str:
    return str(act.__name__).replace("_", " ")


# ---- Paimon ----


@dataclass(frozen=True, slots=True)
class PaimonKind:
    """`act` damages staged files, `patch` makes the rewrite itself wrong."""

    base: Callable[[Bases], Path]
    run: Callable[..., RunDocument]
    act: Callable[[Any], object] | None = None
    patch: Callable[[pytest.MonkeyPatch], object] | None = None
    same_rows: bool = True

    def __call__(self, bases: Bases, folder: Path) -> tuple[Gate, Publish]:
        table = Path(shutil.copytree(self.base(bases), folder / "t"))
        return partial(self._stopped, table), partial(self._published, table)

    def _stopped(self, table: Path, level: VerifyLevel) -> bool:
        document = self._ran(table, before_the_gate(table, self._act), verify=level.value)
        assert document.outcome in (Outcome.MISMATCH, Outcome.VERIFIED), document.reason
        return document.outcome is Outcome.MISMATCH

    def _published(self, table: Path) -> Published:
        document = self._ran(table, test_delete.asleep(table, self._act))
        version = document.committed_version
        if version is None:
            raise ValueError(document.reason)
        where = Address("paimon", str(table), table.name)
        return Published(where, document.base_version, version - 1, version, self.same_rows)

    def _act(self, staged: Any) -> None:
        if self.act is not None:
            self.act(staged)

    def _ran(self, table: Path, gate: AbstractContextManager[None], **how: Any) -> RunDocument:
        with gate, pytest.MonkeyPatch.context() as patch:
            if self.patch is not None:
                self.patch(patch)
            return self.run(table, **how)


def _orders(bases: Bases) -> Path:
    return SAMPLES / "orders"


def _told(bases: Bases) -> Path:
    """With a changelog."""

    def made() -> Path:
        copy = Path(shutil.copytree(SAMPLES / "orders", bases.folder / "bases" / "told"))
        return test_changes.with_options(copy, {"changelog-producer": "lookup"})

    return Path(bases.once("told", made))


def _java(name: str, make: Callable[[PaimonJava, Path], object]) -> Callable[[Bases], Path]:
    return lambda bases: bases.paimon(name, make)


def _elements(patch: pytest.MonkeyPatch, *, name: str) -> None:
    patch.setattr(ElementFold, "values", test_elements.changed(*test_elements.SABOTAGES[name]))


def _fold(patch: pytest.MonkeyPatch, *, wrongly: Any) -> None:
    patch.setattr(rewrite, "fold", wrongly)


def _one_day(table: Path, **how: Any) -> RunDocument:
    return upgrade(table, **ONE_DAY, **how)


def _of_changes() -> Mapping[str, Callable[[Any], object]]:
    found = {name: test_changes.changed(change) for name, (change, _) in test_changes.CAUGHT.items()}
    return found | {name: act for name, (act, _) in test_changes.STOPPED.items()}


def _compaction(engine: str, act: Any, *, full: bool) -> PaimonKind:
    base = _java(f"compaction of {engine}", partial(_made_to_compact, engine))
    return PaimonKind(base, partial(optimize, full=full), patch=act)


def _made_to_compact(engine: str, java: PaimonJava, folder: Path) -> None:
    test_compactions.made(java, folder, test_compactions.ENGINES[engine])


_PATCHES = {act: name.replace("_", " ") for name, act in vars(test_compactions).items() if isfunction(act)}
"""Some of them are results of functions, and have no name of their own."""


def _merge(name: str) -> PaimonKind:
    engine, wrongly = test_merges.SABOTAGE[name]
    base = _java(f"merge {sorted(engine)}", lambda java, folder: test_merges.made(java, folder, engine))
    return PaimonKind(base, upgrade, patch=partial(_fold, wrongly=wrongly))


def _paimon() -> Mapping[str, Mapping[str, PaimonKind]]:
    appended = _java("appended", test_append_sabotage.appended)
    deleted, updated = _java("deleted", test_delete.worn), _java("updated", test_update.worn)
    full = _java("full changelogs", test_full_changelogs.with_new_rows)
    elements = _java("elements", lambda java, at: test_elements.made(java, at, test_elements.TABLES["aggregation"]))
    changes = _of_changes()
    pack = partial(operate, operation=Operation.OPTIMIZE, **test_append_sabotage.WORN_ALONE)
    hide = partial(operate, operation=Operation.DELETE, rows="id > 35")
    sets = partial(operate, operation=Operation.UPDATE, rows="id > 35", sets=["n = id"])
    return {
        "Paimon: upgrade": {named(act): PaimonKind(_orders, _one_day, act) for act in test_sabotage.CAUGHT},
        "Paimon: changelog of an upgrade": {name: PaimonKind(_told, _one_day, act) for name, act in changes.items()},
        "Paimon: merges of an upgrade": {name: _merge(name) for name in test_merges.SABOTAGE},
        "Paimon: elements of an upgrade": {
            name: PaimonKind(elements, partial(upgrade, full=True), patch=partial(_elements, name=name))
            for name in test_elements.SABOTAGES
        },
        "Paimon: compaction": {
            f"{_PATCHES[act]}: {engine}, {'full' if full else 'minor'}": _compaction(engine, act, full=full)
            for engine, act, full, _ in test_compactions.SABOTAGE
        },
        "Paimon: changelog of a compaction": {
            name: PaimonKind(full, partial(optimize, full=True), changes[name])
            for name in test_full_changelogs.SABOTAGES
        },
        "Paimon without keys: optimize": {
            named(act): PaimonKind(appended, pack, act) for act in test_append_sabotage.CAUGHT
        },
        "Paimon without keys: delete": {
            named(act): PaimonKind(deleted, hide, act, same_rows=False)
            for act in (test_delete.hide_one_row_more, test_delete.hide_one_row_less)
        },
        "Paimon without keys: update": {
            named(act): PaimonKind(updated, sets, act, same_rows=False) for act in test_update.ACTS
        },
    }


# ---- Delta ----


@dataclass(frozen=True, slots=True)
class DeltaKind:
    staged: Callable[[HandMade], Candidate]
    act: Callable[[DeltaStaged], None]
    made: Callable[[Path], HandMade] = lambda folder: delta.filled(HandMade(folder))

    def __call__(self, bases: Bases, folder: Path) -> tuple[Gate, Publish]:
        made = self.made(folder / "t")
        candidate = self.staged(made)
        self.act(DeltaStaged(made, candidate))
        return partial(self._stopped, made, candidate), partial(self._published, made, candidate)

    def _stopped(self, made: HandMade, candidate: Candidate, level: VerifyLevel) -> bool:
        return not isinstance(delta.judged(made, candidate, level), Verified)

    def _published(self, made: HandMade, candidate: Candidate) -> Published:
        assert delta.opened(made).commits.commit(candidate)
        parent = candidate.parent_version
        return Published(Address("delta", str(made.folder), "t"), parent, parent, candidate.version)


def _delta() -> Mapping[str, Mapping[str, DeltaKind]]:
    return {
        "Delta: rows rewritten": {named(act): DeltaKind(delta.rewritten, act) for act in delta.REWRITTEN},
        "Delta: row ids": {named(act): DeltaKind(delta.rewritten, act, _tracked) for act in delta.TRACKED},
        "Delta: vectors": {named(act): DeltaKind(delta.rebuilt, act) for act in delta.REBUILT},
        "Delta: shredded variants": {
            named(act): DeltaKind(variants.rewritten, act, variants.filled) for act in variants.SHREDDED
        },
        "Delta: clustering columns": {
            named(act): DeltaKind(clustered.rewritten, act, clustered.filled) for act in clustered.CLUSTERED
        },
    }


def _tracked(folder: Path) -> HandMade:
    return delta.filled(HandMade(folder, row_ids=True))


# ---- Iceberg ----


@dataclass(frozen=True, slots=True)
class IcebergKind:
    base: Callable[[Bases], Kept]
    staged: Callable[[Any], tuple[Plan, Candidate]]
    act: Callable[[IcebergStaged], None]
    damaged: Callable[[IcebergTable, Candidate], IcebergStaged] = lambda table, candidate: IcebergStaged(
        table, candidate, iceberg.TOUCHED[0]
    )

    def __call__(self, bases: Bases, folder: Path) -> tuple[Gate, Publish]:
        kept = self.base(bases)
        table = opened(kept.put_back())
        made = self.staged(table)
        self.act(self.damaged(table, made[1]))

        def stopped(level: VerifyLevel) -> bool:
            return not isinstance(iceberg.judged(table, made, level), Verified)

        def published() -> Published:
            assert table.commits.commit(made[1])
            parent = made[1].parent_version
            return Published(address(kept.table), parent, parent, made[1].version)

        return stopped, published


def _iceberg() -> Mapping[str, Mapping[str, IcebergKind]]:
    plain, tracked = (partial(Bases.iceberg, version=version) for version in (2, 3))
    return {
        "Iceberg: rows rewritten": {
            named(act): IcebergKind(plain, iceberg.rewritten, act) for act in iceberg.REWRITTEN
        },
        "Iceberg: row ids": {named(act): IcebergKind(tracked, iceberg.rewritten, act) for act in iceberg.TRACKED},
        "Iceberg: deletes converted": {named(act): IcebergKind(plain, converted, act) for act in iceberg.CONVERTED},
        "Iceberg: vectors": {named(act): IcebergKind(tracked, converted, act) for act in iceberg.VECTORS},
        "Iceberg: the table's own order": {
            named(act): IcebergKind(_ordered, test_order_audit.staged, act, _of_its_unit)
            for act in test_order_audit.ACTS
        },
        "Iceberg: moves to the current spec": {
            named(act): IcebergKind(_evolved, _moved, act, test_respec.acted) for act in test_respec.MOVED
        },
        "Iceberg: variants": {
            named(act): IcebergKind(_of_variants, test_variant_audit.staged, act) for act in test_variant_audit.ACTS
        },
        "Iceberg: ORC files of version 3": {
            **{named(act): IcebergKind(_in_orc, iceberg.rewritten, act) for act in test_orc_sabotage.WRITTEN},
            **{named(act): IcebergKind(_in_orc, converted, act) for act in iceberg.VECTORS},
        },
    }


def _ordered(bases: Bases) -> Kept:
    return bases.iceberg_of("ordered", test_order_audit.filled)


def _of_variants(bases: Bases) -> Kept:
    return bases.iceberg_of("variants", partial(test_variant_audit.filled, bases.iceberg_java))


def _in_orc(bases: Bases) -> Kept:
    return bases.iceberg_of("nested", partial(test_orc_sabotage.filled, bases.iceberg_java))


def _of_its_unit(table: IcebergTable, candidate: Candidate) -> IcebergStaged:
    return IcebergStaged(table, candidate, candidate.units[0])


def _evolved(bases: Bases) -> Kept:
    return bases.iceberg_of("evolved", partial(test_respec.evolved, spec="bucket"))


def _moved(table: IcebergTable) -> tuple[Plan, Candidate]:
    _, found, _, candidate, _ = test_respec.moved(table)
    return found, candidate


def every_kind() -> Sequence[Kind]:
    groups: Mapping[str, Mapping[str, Any]] = {**_paimon(), **_delta(), **_iceberg()}
    return [Kind(group, name, kind) for group, found in groups.items() for name, kind in found.items()]
