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

import io
import os
import time
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime, timezone
from typing import Any

import fsspec  # type: ignore[import-untyped, unused-ignore]
from fsspec.callbacks import DEFAULT_CALLBACK  # type: ignore[import-untyped, unused-ignore]
from fsspec.spec import AbstractFileSystem  # type: ignore[import-untyped, unused-ignore]
from fsspec.transaction import (  # type: ignore[import-untyped, unused-ignore]
    Transaction as FsTransaction,
)

from holdall._files import BUFFER, ObjectFile, ObjectReader, ObjectWriter, RawObject
from holdall._replace import replacing
from holdall._shared import Shared
from holdall._store import Store, View
from holdall.errors import ConflictError, InvalidError, NotFoundError, ReadOnlyError

SUFFIX = ".holdall"
_LOCAL = (None, "file", "local")


def _split(url: str) -> tuple[str | None, str]:
    """The store's path and the name within it."""
    at = (url + "/").find(SUFFIX + "/")
    if at < 0:
        return None, url
    end = at + len(SUFFIX)
    return url[:end], url[end:]


def _without_protocol(url: str) -> tuple[str, bool]:
    for start in ("holdall://", "holdall::"):
        if url.startswith(start):
            return url[len(start) :], True
    return url, False


def _attributes() -> dict[str, bytes]:
    return {"mtime": str(time.time_ns()).encode()}


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _modified(attributes: dict[str, bytes]) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(attributes["mtime"]) / 1e9, timezone.utc)
    except (KeyError, ValueError, OverflowError, OSError):
        return None


class _Reading(io.RawIOBase):
    """An object read through a shared store, which others may open anew meanwhile."""

    def __init__(self, shared: Shared, name: str):
        self._shared = shared
        with shared.reading() as store:
            info = store.info(name)
        self._oid, self._version, self._size = info.oid, info.version, info.size
        self._at = 0
        self._store: View | None = None
        self.name = name

    @property
    def oid(self) -> Any:
        return self._oid

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        at = offset + (0, self._at, self._size)[whence]
        if at < 0:
            raise ValueError("a seek before the first byte")
        self._at = at
        return at

    def readinto(self, buffer: Any) -> int:
        with self._shared.reading() as store:
            if store is not self._store or not getattr(store, "read_only", True):
                if store.info(self._oid).version != self._version:
                    raise ConflictError(f"{self.name!r} was changed while it was read")
                self._store = store
            n = store.read_into(self._oid, buffer, self._at)
        self._at += n
        return n


class HoldallTransaction(FsTransaction):  # type: ignore[misc, unused-ignore]
    """Files that appear together when the block ends."""

    fs: HoldallFileSystem

    def start(self) -> None:
        super().start()
        self.closed: list[RawObject] = []
        self._stack = ExitStack()
        self._store = self._stack.enter_context(self.fs._writing())

    def complete(self, commit: bool = True) -> None:
        with self._stack:
            for file in self.files:
                # Those that the block left open; closing puts them with the others.
                file.close()
            self.files.clear()
            if not commit:
                for raw in self.closed:
                    raw.close_into(None, False)
            elif self.closed:
                with self._store.transaction() as tx:
                    for raw in self.closed:
                        raw.close_into(tx.source, True)


class HoldallFileSystem(AbstractFileSystem):  # type: ignore[misc, unused-ignore]
    """The objects of a store as files.

    ``fo`` is the store: a path, or a ``holdall.Store`` that is open. ``mode="r"`` refuses every
    change. Other options are those of ``holdall.open``. A store given by its path is open for
    writing only while something is written; while it is read, other processes can read it too.
    """

    protocol = "holdall"
    root_marker = ""
    async_impl = False
    transaction_type = HoldallTransaction

    def __init__(
        self,
        fo: str | os.PathLike[str] | Store = "",
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
        if isinstance(fo, Store):
            self._shared = Shared(fo.path, {}, fo)
            return
        path = os.fspath(fo)
        if not path:
            raise ValueError("name a store: holdall://FILE.holdall/.. or fo=FILE")
        if target_protocol in _LOCAL:
            path = fsspec.filesystem("file")._strip_protocol(path)
        else:
            # A cached copy of a remote file: changes of it would be lost.
            self.mode = "r"
            opened = fsspec.filesystem(target_protocol, **(target_options or {})).open(path)
            path = opened.name
        self._shared = Shared.of(path, options)

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(p) for p in path]
        text, had = _without_protocol(os.fspath(path))
        if had:
            text = _split(text)[1] if _split(text)[0] else text
        return text.strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        store, _ = _split(_without_protocol(path)[0])
        return {"fo": store} if store else {}

    @property
    def fsid(self) -> str:
        return f"holdall:{self._shared.path}"

    def close(self) -> None:
        """Closes the store, where this keeps it open for reading."""
        self._shared.release()

    def _writing(self) -> Any:
        if self.mode == "r":
            raise ReadOnlyError("the file system was opened with mode 'r'")
        return self._shared.writing()

    # What is there.

    def _info(self, store: View, name: str) -> dict[str, Any]:
        info = store.info(name)
        return {
            "name": name,
            "size": info.size,
            "type": "file",
            "version": info.version,
            "oid": str(info.oid),
            "modified": _modified(info.attributes),
        }

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        name = self._strip_protocol(path)
        with self._shared.reading() as store:
            if name and name in store:
                return self._info(store, name)
            if not name or self._is_folder(store, name):
                return {"name": name, "size": 0, "type": "directory"}
        raise NotFoundError(f"not found: {name!r} in {self._shared.path}")

    @staticmethod
    def _is_folder(store: View, name: str) -> bool:
        return next(iter(store.names(name + "/")), None) is not None

    def exists(self, path: str, **kwargs: Any) -> bool:
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        name = self._strip_protocol(path)
        prefix = name + "/" if name else ""
        out: list[dict[str, Any]] = []
        with self._shared.reading() as store:
            after: str | None = None
            while True:
                page = store.list(prefix, "/", start_after=after)
                out += ({"name": p.rstrip("/"), "size": 0, "type": "directory"} for p in page.prefixes)
                # A name that ends in a slash stands for its folder.
                out += (self._info(store, n) for n in page.names if n != prefix)
                after = page.next
                if after is None:
                    break
            if not out:
                if name and name in store:
                    out = [self._info(store, name)]
                elif name:
                    raise NotFoundError(f"not found: {name!r} in {self._shared.path}")
        out.sort(key=lambda entry: entry["name"])
        return out if detail else [entry["name"] for entry in out]

    def find(
        self,
        path: str,
        maxdepth: int | None = None,
        withdirs: bool = False,
        detail: bool = False,
        **kwargs: Any,
    ) -> Any:
        if maxdepth is not None or withdirs:
            return super().find(path, maxdepth=maxdepth, withdirs=withdirs, detail=detail, **kwargs)
        name = self._strip_protocol(path)
        with self._shared.reading() as store:
            names = [n for n in store.names(name + "/" if name else "") if not n.endswith("/")]
            if not names and name and name in store:
                names = [name]
            return {n: self._info(store, n) for n in names} if detail else names

    def modified(self, path: str) -> datetime:
        found = self.info(path).get("modified")
        if found is None:
            raise NotImplementedError(f"{path!r} does not tell when it was changed")
        return found  # type: ignore[no-any-return]

    def checksum(self, path: str) -> int:
        return hash(self.ukey(path))

    def ukey(self, path: str) -> str:
        return str(self.info(path).get("version", path))

    # Bytes.

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any
    ) -> bytes:
        name = self._strip_protocol(path)
        with self._shared.reading() as store:
            if start is None and end is None:
                return store[name]
            found = store.get_range(name, start or 0, end)
        if found is None:
            raise NotFoundError(f"not found: {name!r} in {self._shared.path}")
        return found

    def cat(self, path: Any, recursive: bool = False, on_error: str = "raise", **kwargs: Any) -> Any:
        if on_error != "raise" or kwargs:
            return super().cat(path, recursive=recursive, on_error=on_error, **kwargs)
        names = self.expand_path(path, recursive=recursive)
        if isinstance(path, str) and names == [self._strip_protocol(path)]:
            return self.cat_file(path)
        with self._shared.reading() as store:
            found = dict(zip(names, store.get_many(names)))
            for name, data in found.items():
                if data is None and not self._is_folder(store, name):
                    raise NotFoundError(f"not found: {name!r} in {self._shared.path}")
        return {name: data for name, data in found.items() if data is not None}

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **kwargs: Any) -> None:
        if self._intrans:
            super().pipe_file(path, value, mode=mode, **kwargs)
            return
        name = self._strip_protocol(path)
        with self._writing() as store:
            store.put(name, value, exclusive=mode == "create", attributes=_attributes())

    def pipe(self, path: Any, value: Any = None, **kwargs: Any) -> None:
        if isinstance(path, dict) and not self._intrans and not kwargs:
            pairs = ((self._strip_protocol(name), data) for name, data in path.items())
            with self._writing() as store:
                store.put_many(pairs, attributes=_attributes())
            return
        super().pipe(path, value, **kwargs)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | str | None = None,
        autocommit: bool = True,
        cache_options: Any = None,
        **kwargs: Any,
    ) -> Any:
        size = block_size if isinstance(block_size, int) and block_size > 0 else BUFFER
        kind = mode.replace("b", "").replace("t", "")
        if kind == "r":
            return ObjectReader(_Reading(self._shared, path), size)
        stack = ExitStack()
        store = stack.enter_context(self._writing())
        try:
            raw = RawObject(store, path, kind, _attributes())
        except BaseException:
            stack.close()
            raise
        close = raw.when_closed

        def closed(keep: bool) -> None:
            with stack:
                if autocommit or not keep or kind not in ("w", "x", "w+", "x+"):
                    close(keep)
                else:
                    self.transaction.closed.append(raw)

        raw.when_closed = closed
        return ObjectFile(raw, size) if "+" in kind else ObjectWriter(raw, size)

    # Files beside the store.

    def _refuse_own(self, path: str | os.PathLike[str]) -> None:
        """Raises for a file of the store itself, whatever name leads to it."""
        path = os.path.realpath(path)
        if not os.path.exists(self._shared.path):
            return
        with self._shared.reading() as store:
            source = store.source
            own = os.path.exists(path) and source.is_own_file(*_identity(path))
            folder, name = os.path.split(path)
            if own or os.path.isdir(folder) and source.is_log_place(*_identity(folder), name):
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
        with self._shared.reading() as store:
            mode = store.info(self._strip_protocol(rpath)).attributes.get("mode")
        with replacing(target, mode) as file:
            super().get_file(rpath, target, callback=callback, outfile=file, **kwargs)

    def put_file(
        self, lpath: Any, rpath: str, callback: Any = DEFAULT_CALLBACK, **kwargs: Any
    ) -> None:
        self._refuse_own(lpath)
        super().put_file(lpath, rpath, callback=callback, **kwargs)

    # Changes.

    def touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        name = self._strip_protocol(path)
        with self._writing() as store:
            if truncate or name not in store:
                store.put(name, b"", attributes=_attributes())
            else:
                store.set_attributes(name, store.info(name).attributes | _attributes())

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        with self._writing() as store:
            if source in store:
                store.copy(source, target)
            elif not self._is_folder(store, source):
                raise NotFoundError(f"not found: {source!r} in {self._shared.path}")

    def mv_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Gives an object another name; one that has it is replaced."""
        with self._writing() as store, store.transaction() as tx:
            tx.remove(path2)
            tx.rename(path1, path2)

    def mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> None:
        if isinstance(path1, str) and isinstance(path2, str) and path1 != path2 and not recursive:
            source, target = self._strip_protocol(path1), self._strip_protocol(path2)
            if self.isfile(source) and not path2.endswith("/") and not self.isdir(target):
                self.mv_file(source, target)
                return
        super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **kwargs)

    def rm_file(self, path: str) -> None:
        with self._writing() as store:
            del store[self._strip_protocol(path)]

    _rm = rm_file

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        names = self.expand_path(path, recursive=recursive, maxdepth=maxdepth)
        with self._writing() as store:
            for some in _thousands(names):
                with store.transaction() as tx:
                    for name in some:
                        if not tx.remove(name) and not recursive:
                            raise NotFoundError(f"not found: {name!r} in {self._shared.path}")

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        """Nothing: a folder is there as soon as something is in it."""

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Nothing, as ``mkdir``."""

    def rmdir(self, path: str) -> None:
        """Nothing: a folder is gone with its last object."""
        if self.isdir(path) and self._strip_protocol(path):
            raise OSError(f"{path!r} is not empty")


def _thousands(names: list[str]) -> Iterable[list[str]]:
    return (names[i : i + 1000] for i in range(0, len(names), 1000))


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
