"""A store as the dict of bytes that it is: steps for both, and what each answers."""

from hypothesis import strategies as st

from nightkeep.errors import MissingFile
from nightkeep.storage import Storage

PLACES = ("a", "b", "a/c", "d e%", "a/c d/e")
Step = tuple[str, str, str, bytes]
STEP: st.SearchStrategy[Step] = st.tuples(
    st.sampled_from(("put", "put_if_absent", "replace", "create", "move", "delete", "delete_all")),
    st.sampled_from(PLACES[2:]),
    st.sampled_from(PLACES[2:]),
    st.binary(max_size=3),
)
"""Verb, name, another name and bytes."""


def done(store: Storage, verb: str, name: str, other: str, data: bytes) -> object:
    try:
        match verb:
            case "put":
                store.put(name, data)
                return None
            case "put_if_absent":
                return store.put_if_absent(name, data, temporary="t")
            case "replace":
                store.replace(name, data, temporary="t")
                return None
            case "create":
                with store.create(name) as sink:
                    sink.write(data)
                return None
            case "move":
                return store.move(name, other)
            case "delete":
                return store.delete(name)
        return store.delete_all([name, other])
    except (FileExistsError, MissingFile) as failure:
        return type(failure)


def done_to(twin: dict[str, bytes], verb: str, name: str, other: str, data: bytes) -> object:
    match verb:
        case "put" | "create" if name in twin:
            return FileExistsError
        case "put_if_absent" if name in twin:
            return False
        case "put" | "create" | "replace" | "put_if_absent":
            twin[name] = data
            return True if verb == "put_if_absent" else None
        case "move" if name not in twin:
            return MissingFile
        case "move":
            if other in twin:
                return False
            twin[other] = twin.pop(name)
            return True
        case "delete":
            return twin.pop(name, None) is not None
    twin.pop(name, None), twin.pop(other, None)
    return ()
