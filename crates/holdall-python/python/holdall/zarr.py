"""Stores of zarr: arrays whose chunks are objects.

>>> import zarr
>>> with HoldallStore(path) as s:
...     array = zarr.create_array(s, shape=(100, 100), chunks=(10, 10), dtype="f4")
...     array[:] = 1
...     float(array[5, 5])
1.0
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.abc.store import Store as ZarrStore
from zarr.core.buffer import Buffer
from zarr.core.buffer.core import default_buffer_prototype

from holdall._shared import Shared
from holdall._store import Listing, Store, View

if TYPE_CHECKING:
    from zarr.abc.store import ByteRequest
    from zarr.core.buffer import BufferPrototype

    from typing_extensions import Self


class HoldallStore(ZarrStore):
    """A part of a Holdall store as a store of zarr, version 3.

    ``store`` is a path, or a ``holdall.Store`` that is open; ``prefix`` begins the names of its
    objects. A chunk that is written is whole or not there. With ``durable=False``, the default,
    it survives a crash once ``defer`` seconds (0.2) have gone or the store was closed, as files of
    zarr's own store survive once the system wrote them; with ``durable=True`` each write waits
    for the disk. A store opened for writing keeps other processes out until it is closed.
    """

    supports_writes: bool = True
    supports_deletes: bool = True
    supports_listing: bool = True

    def __init__(
        self,
        store: str | os.PathLike[str] | Store,
        prefix: str = "",
        *,
        read_only: bool = False,
        durable: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(read_only=read_only)
        self.prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        self.durable = durable
        self._options = options
        self._shared = (
            Shared.of_store(store, options) if isinstance(store, Store) else Shared.of(store, options)
        )
        self._stack = ExitStack()
        self._opening = threading.Lock()
        self._closed = False

    def with_read_only(self, read_only: bool = False) -> Self:
        self._check_not_closed()
        given = self._shared.given
        return type(self)(
            given if given is not None else self._shared.path,
            self.prefix,
            read_only=read_only,
            durable=self.durable,
            **self._options,
        )

    async def _open(self) -> None:
        with self._opening:
            self._check_not_closed()
            await super()._open()
            self._hold()

    def _check_not_closed(self) -> None:
        if self._closed:
            raise ValueError(f"{self!r} was closed; make a new one")

    def _hold(self) -> None:
        """Keeps the store open for writing for as long as this one is; not for reading."""
        if self.read_only:
            with self._shared.reading():
                return
        store = self._stack.enter_context(self._shared.writing())
        self._objects: View = store if self.durable else store.deferred()
        weakref.finalize(self, self._stack.close)

    @contextmanager
    def _use(self) -> Iterator[View]:
        """The objects, for one call."""
        with self._opening:
            self._check_not_closed()
            if not self._is_open:
                self._hold()
                self._is_open = True
        if self.read_only:
            with self._shared.reading() as store:
                yield store
        else:
            yield self._objects

    def close(self) -> None:
        """Makes everything durable and closes the store, unless others use it; for good."""
        with self._opening:
            self._closed = True
            was_open = self._is_open
            super().close()
            with self._stack:
                if was_open and not self.read_only and not self._objects.source.closed:
                    self._objects.source.flush()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, HoldallStore)
            and self._shared.is_same(other._shared)
            and self.prefix == other.prefix
        )

    def __getstate__(self) -> dict[str, Any]:
        if self._shared.given is not None:
            raise TypeError("a zarr store of a holdall.Store cannot be pickled; give its path")
        return {
            "store": self._shared.path,
            "prefix": self.prefix,
            "read_only": self.read_only,
            "durable": self.durable,
            "options": self._options,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        options = state.pop("options")
        self.__init__(**state, **options)  # type: ignore[misc]

    def __str__(self) -> str:
        return f"holdall://{self._shared}/{self.prefix}"

    def __repr__(self) -> str:
        return f"HoldallStore('{self}')"

    # Without waiting: what the methods below run in threads.

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        name = self.prefix + key
        with self._use() as view:
            match byte_range:
                case None:
                    found = view.get(name)
                case RangeByteRequest(start, end):
                    found = view.get_range(name, start, end)
                case OffsetByteRequest(offset):
                    found = view.get_range(name, offset)
                case SuffixByteRequest(suffix):
                    found = view.get_range(name, -suffix) if suffix else view.get_range(name, 0, 0)
                case _:
                    raise ValueError(f"Unexpected byte_range, got {byte_range}.")
        if found is None:
            return None
        return (prototype or default_buffer_prototype()).buffer.from_bytes(found)

    def set_sync(self, key: str, value: Buffer) -> None:
        self._set(key, value)

    def _set(self, key: str, value: Buffer, exclusive: bool = False) -> None:
        self._check_writable()
        if not isinstance(value, Buffer):
            raise TypeError(f"a value is a zarr Buffer, not {type(value).__name__}")
        with self._use() as view:
            view.put(self.prefix + key, value.as_buffer_like(), exclusive=exclusive)

    def delete_sync(self, key: str) -> None:
        self._check_writable()
        with self._use() as view:
            view.remove(self.prefix + key)

    def _delete_all(self, prefix: str) -> None:
        with self._use() as view, view._atomic() as tx:
            for name in list(tx.names(prefix)):
                tx.remove(name)

    def _exists(self, key: str) -> bool:
        with self._use() as view:
            return self.prefix + key in view

    def _size(self, key: str) -> int:
        with self._use() as view:
            return view.info(self.prefix + key).size

    def _names(self, prefix: str) -> tuple[str, ...]:
        with self._use() as view:
            return tuple(view.names(self.prefix + prefix))

    def _page(self, prefix: str, after: str | None) -> Listing:
        with self._use() as view:
            return view.list(prefix, "/", start_after=after)

    # What zarr calls.

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        return await asyncio.to_thread(
            self.get_sync, key, prototype=prototype, byte_range=byte_range
        )

    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, ByteRequest | None]],
    ) -> list[Buffer | None]:
        def all_of_them() -> list[Buffer | None]:
            return [self.get_sync(k, prototype=prototype, byte_range=r) for k, r in key_ranges]

        return await asyncio.to_thread(all_of_them)

    async def exists(self, key: str) -> bool:
        return await asyncio.to_thread(self._exists, key)

    async def set(self, key: str, value: Buffer) -> None:
        await asyncio.to_thread(self._set, key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        try:
            await asyncio.to_thread(self._set, key, value, True)
        except FileExistsError:
            pass

    async def delete(self, key: str) -> None:
        self._check_writable()
        await asyncio.to_thread(self.delete_sync, key)

    async def delete_dir(self, prefix: str) -> None:
        self._check_writable()
        inside = prefix.rstrip("/") + "/" if prefix else ""
        await asyncio.to_thread(self._delete_all, self.prefix + inside)

    async def getsize(self, key: str) -> int:
        return await asyncio.to_thread(self._size, key)

    async def list(self) -> AsyncIterator[str]:
        async for key in self.list_prefix(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for name in await asyncio.to_thread(self._names, prefix):
            yield name[len(self.prefix) :]

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        whole = self.prefix + (prefix.strip("/") + "/" if prefix.strip("/") else "")
        after, last = None, None
        while True:
            page = await asyncio.to_thread(self._page, whole, after)
            for name in sorted(page.names + [p.rstrip("/") for p in page.prefixes]):
                # An array may have a name that is a folder too.
                if name != whole and name != last:
                    yield name[len(whole) :]
                last = name
            after = page.next
            if after is None:
                return
