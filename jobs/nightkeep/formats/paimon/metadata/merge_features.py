"""A table's options -> what of its merge engine we do not handle."""

from __future__ import annotations

from collections.abc import Iterator

from nightkeep.formats.paimon.metadata.element_rules import collect_fault, merge_map_fault, nested_fault
from nightkeep.formats.paimon.metadata.merge_engine import (
    IGNORE_DELETE,
    INTERNAL,
    LONG_DIGITS,
    NUMBERS,
    OF_ELEMENTS,
    REMOVING_GROUPS,
    WHOLE_ROWS,
    Function,
    MergeEngine,
    delimiter_of,
    engine_of,
    fixed_function,
    function_option,
    groups_of,
    is_distinct,
    listed,
    named_function,
)
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema, option_bool
from nightkeep.formats.paimon.metadata.types import MAX_LENGTH, TypeRoot

_ARITHMETIC = (Function.SUM, Function.PRODUCT)


def merge_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    """Features of the merge engine that we do not handle, each with an advice."""
    engine = engine_of(schema)
    if engine not in set(MergeEngine):
        yield f"option merge-engine = {engine} is not handled", f"{', '.join(MergeEngine)} are"
        return
    if engine == MergeEngine.PARTIAL_UPDATE:
        yield from _group_features(schema)
    else:
        for group in groups_of(schema):
            yield f"option {group.option} is not handled", "sequence groups are of partial updates"
    if engine not in WHOLE_ROWS:
        for field in schema.fields:
            yield from _function_features(schema, MergeEngine(engine), field)


def _group_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    """What PartialUpdateMergeFunction.Factory forbids, or lets depend on the order of a hash table."""
    names = {field.name for field in schema.fields}
    removing = listed(schema, REMOVING_GROUPS)
    seen: set[str] = set()
    for group in groups_of(schema):
        feature = f"option {group.option} = {','.join(group.columns)} is not handled"
        members = [*group.sequence, *group.columns]
        if unknown := [name for name in members if name not in names]:
            yield feature, f"the table has no column {', '.join(unknown)}"
        if keys := [name for name in members if name in schema.primary_keys]:
            yield feature, f"{', '.join(keys)} is of the primary key"
        if shared := [name for name in members if name in seen or members.count(name) > 1]:
            yield feature, f"{', '.join(dict.fromkeys(shared))} is named more than once, so that engines differ"
        seen |= {*members}
        removing = tuple(name for name in removing if name not in group.sequence)
    if removing:
        yield f"option {REMOVING_GROUPS} is not handled", f"{', '.join(removing)} is no sequence field of a group"
    yield from _contradictions(schema)


def _contradictions(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    """Options that Java does not allow together."""
    ignoring = [option for option in IGNORE_DELETE if option_bool(schema, option)]
    removes = "partial-update.remove-record-on-delete"
    if ignoring and REMOVING_GROUPS in schema.options:
        yield f"options {ignoring[0]} and {REMOVING_GROUPS} are not handled together", "unset one of them"
    if option_bool(schema, removes) and groups_of(schema):
        yield f"options {removes} and {groups_of(schema)[0].option} are not handled together", "unset one of them"


def _function_features(schema: PaimonSchema, engine: MergeEngine, field: PaimonField) -> Iterator[tuple[str, str]]:
    if fixed_function(schema, engine, field.name) is not None:
        return
    named = named_function(schema, engine, field.name)
    grouped = any(field.name in group.columns for group in groups_of(schema))
    advice = None
    if named not in set(Function) or (named in INTERNAL and named == function_option(schema, field.name)):
        advice = f"{', '.join(f for f in Function if f not in INTERNAL)} are"
    elif engine is MergeEngine.PARTIAL_UPDATE and not grouped and named != Function.LAST_NON_NULL_VALUE:
        advice = "Paimon needs a sequence group for it"
    elif grouped and named == Function.FIRST_NON_NULL_VALUE:
        advice = "in a sequence group, Java's result depends on the order in which rows arrive"
    else:
        advice = _unfit(schema, field, Function(named))
    if advice is not None:
        yield f"aggregate function {named} of column {field.name} ({field.type}) is not handled", advice


def _unfit(schema: PaimonSchema, field: PaimonField, function: Function) -> str | None:
    """Why a column cannot have a function; None if it can."""
    kind = field.type
    if function in OF_ELEMENTS:
        return _unfit_elements(schema, field, function)
    if function in (Function.BOOL_AND, Function.BOOL_OR):
        return None if kind.root is TypeRoot.BOOLEAN else "it is of BOOLEAN columns"
    if function in (Function.MAX, Function.MIN):
        return "Java's merge compares no such values" if kind.is_nested or kind.root is TypeRoot.BOOLEAN else None
    if function in _ARITHMETIC:
        fits = kind.root in NUMBERS and (kind.precision or 0) <= LONG_DIGITS
        return None if fits else f"it is of numbers, of DECIMAL up to {LONG_DIGITS} digits"
    if function is Function.LISTAGG:
        if kind.root is not TypeRoot.VARCHAR or kind.length != MAX_LENGTH:
            return "it is of STRING columns"
        if is_distinct(schema, field.name) and len(delimiter_of(schema, field.name)) != 1:
            return "distinct parts are separated by a delimiter of one character"
    return None


def _unfit_elements(schema: PaimonSchema, field: PaimonField, function: Function) -> str | None:
    takes_back = not option_bool(schema, f"fields.{field.name}.ignore-retract")
    match function:
        case Function.COLLECT:
            return collect_fault(field, compares=takes_back or is_distinct(schema, field.name))
        case Function.MERGE_MAP:
            return merge_map_fault(field)
        case _:
            partial = function is Function.NESTED_PARTIAL_UPDATE
            return nested_fault(schema, field, partial=partial, compares=takes_back)
