"""Stores as file systems of fsspec: ``holdall://data.holdall/folder/a.parquet``.

The store is the shortest prefix of the path that ends in ``.holdall``; other files are named by
``fo=`` or by chaining, as ``holdall://folder/a::file:///data/x.bin``. Folders are what names have
in common before a slash; an empty one does not exist.

>>> import fsspec
>>> with fsspec.open(f"holdall://{path}/folder/a.txt", "w") as f:
...     _ = f.write("hello")
>>> fs, _ = fsspec.url_to_fs(f"holdall://{path}")
>>> fs.find("")
['folder/a.txt']
>>> with fs.transaction:                  # all of it in one commit
...     for name in ("b", "c"):
...         with fs.open(name, "wb") as f:
...             _ = f.write(b"x")
>>> fs.cat(["b", "c"])
{'b': b'x', 'c': b'x'}
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from glob import has_magic
from typing import Any

import fsspec  # type: ignore[import-untyped, unused-ignore]
from fsspec.callbacks import DEFAULT_CALLBACK  # type: ignore[import-untyped, unused-ignore]
from fsspec.compression import compr  # type: ignore[import-untyped, unused-ignore]
from fsspec.core import get_compression  # type: ignore[import-untyped, unused-ignore]
from fsspec.utils import tokenize  # type: ignore[import-untyped, unused-ignore]

from holdall import _fspaths as paths
from holdall._bucket import BucketStore
from holdall._files import BUFFER
from holdall._fschanges import Changes
from holdall._fsfiles import Blocks, Raw, Reader, Reading, ReadWriter, Text, Writer, close_both
from holdall._fsinstances import LOCAL
from holdall._fstransaction import HoldallTransaction, Work
from holdall._replace import replacing
from holdall._shared import Shared
from holdall._store import Store, View
from holdall.errors import InvalidError, NotFoundError, ReadOnlyError



def _of(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


class HoldallFileSystem(Changes):
    """The objects of a store as files.

    ``fo`` is the store: a path, an address ``s3://BUCKET/PREFIX``, or a store that is open. ``mode="r"`` refuses every
    change. Other options are those of ``holdall.open``. A store given by its path is open for
    writing only while something is written; while it is read, other processes can read it too.
    """

    protocol = "holdall"
    root_marker = ""
    async_impl = False
    transaction_type = HoldallTransaction

    def __init__(
        self,
        fo: str | os.PathLike[str] | Store | BucketStore = "",
        mode: str = "a",
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        **options: Any,
    ):
        own = {k: options.pop(k) for k in list(options) if k in _FSSPEC_OPTIONS}
        super().__init__(**own)
        if mode not in ("r", "a"):
            raise ValueError(f"mode {mode!r} is neither 'r' nor 'a'")
        self.mode = mode
        # The class cannot tell the names of this store from those of another, or "x" from "/x".
        self._strip_protocol = self._whole_name  # type: ignore[method-assign]
        self._block: Work | None = None
        self._call = threading.local()
        self._turn = threading.Condition()
        self._in_turn: threading.Thread | None = None
        if isinstance(fo, Store):
            self._shared = Shared.of_store(fo, options)
            return
        if self._open_elsewhere(fo, options):
            return
        path = os.fspath(fo)  # type: ignore[arg-type, unused-ignore]
        if not path:
            raise ValueError("name a store: holdall://FILE.holdall/.. or fo=FILE")
        if target_protocol not in LOCAL:
            # A cached copy of a remote file: changes of it would be lost.
            self.mode = "r"
            opened = fsspec.filesystem(target_protocol, **(target_options or {})).open(path)
            path = opened.name
        self._shared = Shared.of(path, options)

    def _open_elsewhere(self, fo: Any, options: dict[str, Any]) -> bool:
        """Whether the store is none of a file; then it is known from here on."""
        return False

    # Names.

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(p) for p in path]
        return paths.name_of(os.fspath(path))

    def _form(self, path: Any) -> tuple[str, str]:
        """What a path or URL has before the name in this store, and the name.

        Answers begin as the question did. A slash before a name says nothing, unless there is an
        object or folder of such a name.
        """
        text = os.fspath(path)
        store, name = paths.parts_of(text)
        if store is not None and self._shared.is_same(Shared.of(store, {})):
            if paths.name_of(text) == name:
                store = ""
        elif store is not None and paths.without_protocol(text)[1]:
            raise InvalidError(f"{text} is not in the store {self._shared}")
        elif store is not None:
            whole = text.rstrip("/")
            if not self._is_there(whole):
                raise InvalidError(f"{text} is not in the store {self._shared}")
            return "", whole
        if name.startswith("/") and not self._is_there(name):
            name = name.lstrip("/")
        return f"{store}/" if store else "", name

    def _is_there(self, name: str) -> bool:
        try:
            with self._reading() as view:
                return name in view or paths.is_folder(view, name)
        except FileNotFoundError:
            return False

    def _name_of(self, path: Any) -> str:
        return self._form(path)[1]

    def _whole_name(self, path: Any) -> Any:
        if isinstance(path, list):
            return [self._whole_name(p) for p in path]
        before, name = self._form(path)
        return before + name if name else before[:-1]

    def unstrip_protocol(self, name: str) -> str:
        """The URL of a name, with the store's path; a store in memory has none."""
        name = self._name_of(name)
        return paths.url_of(self._shared.path, name) if self._shared.path else f"holdall://{name}"

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        text, had = paths.without_protocol(path)
        store = paths.split(text)[0] if had else None
        return {"fo": paths.absolute(store)} if store else {}

    @property
    def fsid(self) -> str:
        return f"holdall:{self._shared}"

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """What makes the file system anew, also as JSON; one of an open store has nothing."""
        if self._shared.given is not None:
            raise TypeError("a file system of an open store cannot be written down; give its path")
        return super().to_dict(**kwargs)  # type: ignore[no-any-return, unused-ignore]

    def close(self) -> None:
        """Closes the store, if this keeps it open for reading."""
        self._shared.release()

    # Transactions.

    def start_transaction(self) -> HoldallTransaction:
        """Begins a transaction without a block; ``end_transaction`` commits it."""
        transaction = HoldallTransaction(self)
        transaction.start()
        return transaction

    def end_transaction(self) -> None:
        """Commits what ``start_transaction`` began."""
        self.transaction.complete()

    def _take_turn(self) -> None:
        """Waits until no thread has a transaction of this file system."""
        me = threading.current_thread()
        wait = self._shared.wait()
        with self._turn:
            while self._in_turn is not None:
                if self._in_turn is me:
                    raise InvalidError("a transaction of this file system is under way already")
                if not self._in_turn.is_alive():
                    name = self._in_turn.name
                    raise InvalidError(f"thread {name!r} ended and left a transaction; end it")
                wait.on(self._turn, f"a transaction of thread {self._in_turn.name!r}")
            self._in_turn = me

    def _end_turn(self) -> None:
        with self._turn:
            self._in_turn = None
            self._turn.notify_all()

    @contextmanager
    def _joined(self) -> Iterator[Work | None]:
        """The transaction that a call of this thread is a part of, if there is one."""
        own: Work | None = getattr(self._call, "work", None)
        block = self._block
        if own is not None or block is None or not block.enter():
            yield own
            return
        try:
            yield block
        finally:
            block.leave()

    def _store(self, make: bool = True) -> Any:
        """The store, open for writing as long as the block."""
        if self.mode == "r":
            raise ReadOnlyError("the file system was opened with mode 'r'")
        return self._shared.writing(make)

    @contextmanager
    def _reading(self) -> Iterator[View]:
        with self._joined() as work:
            if work is not None:
                yield work.tx
                return
            with self._shared.reading() as store:
                yield store

    @contextmanager
    def _writing(self, make: bool = True) -> Iterator[View]:
        """Where a call writes that makes one change."""
        with self._joined() as work:
            if work is not None:
                yield work.tx
                return
            with self._store(make) as store:
                yield store

    @contextmanager
    def _atomic(self, make: bool = True) -> Iterator[View]:
        """Where a call writes that makes many changes: they are one."""
        with self._joined() as work:
            if work is not None:
                yield work.tx
                return
        work = Work(self, make)
        self._call.work = work
        try:
            yield work.tx
        except BaseException:
            self._call.work = None
            work.end(False)
            raise
        self._call.work = None
        work.end(True)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Many changes, after all that can be refused was: if one fails, none is committed."""
        try:
            yield
        except BaseException as e:
            with self._joined() as work:
                if work is not None:
                    work.spoilt = e
            raise

    # What is there.

    def _info(self, store: View, before: str, name: str) -> dict[str, Any]:
        info = store.info(name)
        return {
            "name": before + name,
            "size": info.size,
            "type": "file",
            "version": info.version,
            "oid": str(info.oid),
            "modified": info.modified,
        }

    def _entry(self, store: View, before: str, name: str, folder: bool) -> dict[str, Any]:
        if folder:
            whole = before + name if name else before[:-1]
            return {"name": whole, "size": 0, "type": "directory"}
        return self._info(store, before, name)

    def _entries(
        self, store: View, before: str, found: dict[str, bool]
    ) -> list[dict[str, Any]]:
        return [self._entry(store, before, n, folder) for n, folder in found.items()]

    def _missing(self, name: str) -> NotFoundError:
        return NotFoundError(f"not found: {name!r} in {self._shared}")

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        before, name = self._form(path)
        with self._reading() as store:
            if name and name in store:
                return self._info(store, before, name)
            if not name or paths.is_folder(store, name):
                return self._entry(store, before, name, True)
        raise self._missing(name)

    def exists(self, path: str, **kwargs: Any) -> bool:
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def _is(self, path: str, kind: str) -> bool:
        try:
            return bool(self.info(path)["type"] == kind)
        except FileNotFoundError:
            return False

    def isdir(self, path: str) -> bool:
        """Whether it is a folder."""
        return self._is(path, "directory")

    def isfile(self, path: str) -> bool:
        """Whether it is an object."""
        return self._is(path, "file")

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        before, name = self._form(path)
        with self._reading() as store:
            found = dict(sorted(paths.level(store, name + "/" if name else "")))
            if not found and name and name in store:
                found = {name: False}
            elif not found and name and not paths.is_folder(store, name):
                raise self._missing(name)
            if not detail:
                return [before + n for n in found]
            return self._entries(store, before, found)

    def find(
        self,
        path: str,
        maxdepth: int | None = None,
        withdirs: bool = False,
        detail: bool = False,
        prefix: str = "",
        **kwargs: Any,
    ) -> Any:
        """All objects below a folder; with ``prefix`` those that begin so in it."""
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        before, name = self._form(path)
        found: dict[str, bool] = {}
        try:
            with self._reading() as store:
                inside = paths.below(store, name + "/" if name else "", maxdepth, prefix)
                found = {n: folder for n, folder in inside if withdirs or not folder}
                if name and not prefix:
                    if name in store:
                        # Of an object beside a folder of its name the folder is asked.
                        found = found or {name: False}
                    elif withdirs and (found or paths.is_folder(store, name)):
                        found[name] = True
                names = sorted(found)
                if not detail:
                    return [before + n for n in names]
                entries = self._entries(store, before, {n: found[n] for n in names})
                return {entry["name"]: entry for entry in entries}
        except NotFoundError:
            if self._shared.given is not None or self._shared.identity() is not None:
                raise
            return {} if detail else []

    def glob(self, path: str, maxdepth: int | None = None, **kwargs: Any) -> Any:
        """Objects and folders whose names match; the store's path is none of the pattern."""
        before, name = self._form(path)
        end = "/" if os.fspath(path).endswith("/") and name else ""
        found = super().glob(name + end, maxdepth=maxdepth, **kwargs)
        if not before:
            return found
        if isinstance(found, list):
            return [before + n for n in found]
        return {before + n: entry | {"name": before + n} for n, entry in found.items()}

    def modified(self, path: str) -> datetime:
        found = self.info(path).get("modified")
        if found is None:
            raise NotImplementedError(f"{path!r} does not tell when it was changed")
        return found  # type: ignore[no-any-return]

    def checksum(self, path: str) -> int:
        return int(tokenize(self.ukey(path)), 16)

    def ukey(self, path: str) -> str:
        return str(self.info(path).get("version", path))

    # Bytes.

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any
    ) -> bytes:
        name = self._name_of(path)
        with self._reading() as store:
            if start is None and end is None:
                return store[name]
            found = store.get_range(name, start or 0, end)
        if found is None:
            raise self._missing(name)
        return found

    def cat(self, path: Any, recursive: bool = False, on_error: str = "raise", **kwargs: Any) -> Any:
        if on_error != "raise" or kwargs:
            return super().cat(path, recursive=recursive, on_error=on_error, **kwargs)
        names = self.expand_path(path, recursive=recursive)
        if isinstance(path, str) and names == [self._strip_protocol(path)]:
            return self.cat_file(path)
        with self._reading() as store:
            inside = [self._name_of(name) for name in names]
            found = dict(zip(names, store.get_many(inside)))
            for name, data in zip(inside, found.values()):
                if data is None and name and not paths.is_folder(store, name):
                    raise self._missing(name)
        return {name: data for name, data in found.items() if data is not None}

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **kwargs: Any) -> None:
        name = self._name_of(path)
        with self._writing() as store:
            store.put(name, value, exclusive=mode == "create")

    def pipe(self, path: Any, value: Any = None, **kwargs: Any) -> None:
        if not isinstance(path, dict):
            super().pipe(path, value, **kwargs)
            return
        with self._atomic() as store, self._changing():
            if kwargs:
                super().pipe(path, value, **kwargs)
                return
            pairs = [(self._name_of(name), data) for name, data in path.items()]
            store.put_many(pairs)

    def _opened(self, name: str) -> Reading:
        """An object to be read."""
        # Opened outside of a transaction, it reads what is committed.
        with self._joined() as work:
            use: Callable[..., Any] = self._reading if work else self._shared.reading
        return Reading(use, name, self._shared.identity())

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | str | None = None,
        autocommit: bool = True,
        cache_options: Any = None,
        cache_type: str | None = None,
        **kwargs: Any,
    ) -> Any:
        size = block_size if isinstance(block_size, int) and block_size > 0 else BUFFER
        kind = mode.replace("b", "").replace("t", "")
        if kind == "r":
            raw = self._opened(self._name_of(path))
            if cache_type is None:
                return Reader(raw, size, self, path)
            return Blocks(
                raw, self, path, block_size=size, cache_type=cache_type, cache_options=cache_options
            )
        if sorted(kind.replace("+", "")) not in (["r"], ["w"], ["x"], ["a"]) or len(kind) > 2:
            raise ValueError(f"mode {mode!r} is none that open() knows")
        written = Raw(self, self._name_of(path), kind, autocommit)
        return (ReadWriter if "+" in kind else Writer)(written, size, self, path)

    def open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        cache_options: dict[str, Any] | None = None,
        compression: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Opens an object as the built-in ``open`` does; bytes, if the mode does not say.

        A new object appears when its file is closed. It does not if a write failed, if the file
        was closed while an exception was raised since it was opened, or was dropped; a
        ``ResourceWarning`` says so. ``autocommit=False`` leaves it to ``commit()`` or
        ``discard()`` of the file.
        """
        kwargs.update(block_size=block_size, cache_options=cache_options)
        if "b" not in mode:
            text = {k: kwargs.pop(k) for k in ("encoding", "errors", "newline") if k in kwargs}
            binary = mode.replace("t", "") + "b"
            file = Text(self.open(path, binary, compression=compression, **kwargs), **text)
            file.mode = mode
            return file
        name = self._strip_protocol(path)
        packed = get_compression(name, compression)
        file = self._open(name, mode, **kwargs)
        if packed is None:
            return file
        outer = compr[packed](file, mode=mode[0])
        return outer if mode[0] == "r" else close_both(outer, file)

    # Files beside the store.

    def _refuse_own(self, path: str | os.PathLike[str]) -> None:
        """Raises for a file of the store itself, whatever name leads to it."""
        path = os.path.realpath(path)
        if not self._shared.path or not os.path.exists(self._shared.path):
            return
        with self._shared.reading() as store:
            source = store.source
            own = os.path.exists(path) and source.is_own_file(*_of(path))
            folder, name = os.path.split(path)
            if own or os.path.isdir(folder) and source.is_log_place(*_of(folder), name):
                text = f"{path} belongs to the store {self._shared.path}; name another file"
                raise InvalidError(text)

    def get_file(
        self,
        rpath: str,
        lpath: Any = None,
        callback: Any = DEFAULT_CALLBACK,
        outfile: Any = None,
        **kwargs: Any,
    ) -> None:
        if outfile is not None or not isinstance(lpath, (str, os.PathLike)):
            super().get_file(rpath, lpath, callback=callback, outfile=outfile, **kwargs)
            return
        self._refuse_own(lpath)
        # A link keeps pointing to its file.
        target = os.path.realpath(lpath)
        if self.isdir(rpath) or os.path.exists(target) and not os.path.isfile(target):
            super().get_file(rpath, target, callback=callback, **kwargs)
            return
        with self._reading() as store:
            mode = store.info(self._name_of(rpath)).attributes.get("mode")
        with replacing(target, mode) as file:
            super().get_file(rpath, target, callback=callback, outfile=file, **kwargs)

    def put(
        self,
        lpath: Any,
        rpath: Any,
        recursive: bool = False,
        callback: Any = DEFAULT_CALLBACK,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Copies files of this machine; several of them as one change, which others wait for."""
        put = super().put
        several = recursive or not isinstance(lpath, (str, os.PathLike))
        if not several and not has_magic(os.fspath(lpath)):
            put(lpath, rpath, False, callback, maxdepth, **kwargs)
            return
        with self._atomic(), self._changing():
            put(lpath, rpath, recursive, callback, maxdepth, **kwargs)

    def put_file(
        self, lpath: Any, rpath: str, callback: Any = DEFAULT_CALLBACK, **kwargs: Any
    ) -> None:
        self._refuse_own(lpath)
        super().put_file(lpath, rpath, callback=callback, **kwargs)


_FSSPEC_OPTIONS = (
    "asynchronous",
    "batch_size",
    "dircache",
    "listings_expiry_time",
    "loop",
    "max_paths",
    "skip_instance_cache",
    "use_listings_cache",
)
