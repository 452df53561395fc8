"""What goes to other processes: stores opened for reading and what is of them."""

from __future__ import annotations

from typing import Any

from holdall._store import Store
from holdall._views import Collection, N, Snapshot, Transaction, View
from holdall.errors import SnapshotTooOldError


def of_store(store: Store[Any]) -> Any:
    """Opened again from the same path, with the same options."""
    return _reopened, (store.path, store.source.options)


def of_deferred(view: View[N]) -> Any:
    """Of the store, opened again."""
    return _deferred, (Store._of(view),)


def of_snapshot(snapshot: Snapshot[N]) -> Any:
    """A snapshot of the store, opened again, which must have the same state."""
    return _snapshot, (Store._of(snapshot), snapshot.source.state)


def of_collection(collection: Collection[N]) -> Any:
    """The collection of what it is of."""
    source = collection.source
    outer: View[N]
    match source.kind:
        case "snapshot":
            outer = Snapshot(source, None, collection.keys_as)
        case "transaction":
            outer = Transaction(source, None, collection.keys_as)
        case _:
            outer = Store._of(collection)
    return _collection, (outer, collection.name)


def _reopened(path: str, options: dict[str, Any]) -> Store[Any]:
    return Store(path, "r", **options)


def _deferred(store: Store[N]) -> View[N]:
    return store.deferred()


def _collection(outer: View[N], name: str) -> Collection[N]:
    return outer.collection(name)


def _snapshot(store: Store[N], state: int) -> Snapshot[N]:
    snapshot = store.snapshot()
    if snapshot.source.state != state:
        raise SnapshotTooOldError(
            f"store {store.path} was changed since the snapshot was pickled; take a new one"
        )
    return snapshot
