"""Changes that fsspec asks of a file system: copies, moves, removals. Each call is one commit."""

from __future__ import annotations

import os
import time
from glob import has_magic
from typing import Any

from fsspec.spec import AbstractFileSystem  # type: ignore[import-untyped, unused-ignore]

from holdall import _fspaths as paths
from holdall._fsinstances import Instances
from holdall._store import View
from holdall.errors import InvalidError


class Changes(AbstractFileSystem, metaclass=Instances):  # type: ignore[misc, unused-ignore]
    """The methods of the file system that change what is there."""

    def touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        name = self._name_of(path)
        with self._atomic() as tx:
            if truncate or name not in tx:
                tx.put(name, b"")
            else:
                tx.set_attributes(name, tx.info(name).attributes | {"mtime": str(time.time_ns()).encode()})

    def _pairs(
        self, view: View, path1: Any, path2: Any, recursive: bool, maxdepth: int | None
    ) -> list[tuple[str, str]]:
        """Names and where they go, as fsspec has it for copies."""
        if isinstance(path1, list) and isinstance(path2, list):
            sources, flat, inside = [self._name_of(p) for p in path1], False, False
            target: Any = [self._name_of(p) for p in path2]
        else:
            alone = isinstance(path1, (str, os.PathLike))
            if alone and not isinstance(path2, list) and not os.fspath(path2).endswith("/"):
                name = self._name_of(path1)
                if name == self._name_of(path2):
                    return [(name, name)]
            sources = self.expand_path(path1, recursive=recursive, maxdepth=maxdepth)
            if alone and (not recursive or maxdepth is not None):
                sources = [name for name in sources if not self.isdir(name)]
            sources = [self._name_of(name) for name in sources]
            path2 = path2 if isinstance(path2, list) else os.fspath(path2)
            several = isinstance(path2, list)
            target = [self._name_of(p) for p in path2] if several else self._name_of(path2)
            into = isinstance(path2, str) and (path2.endswith("/") or self.isdir(path2))
            if alone and has_magic(os.fspath(path1)):
                inside = len(sources) == 1
            else:
                inside = alone and into and not os.fspath(path1).endswith("/")
            flat = not alone
        pairs = list(zip(sources, paths.targets(sources, target, inside, flat)))
        paths.check_pairs(view, pairs)
        return pairs

    def copy(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        on_error: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Copies objects as one change; a copy shares its data with the original."""
        on_error = on_error or ("ignore" if recursive else "raise")
        with self._atomic(make=False) as tx:
            pairs = self._pairs(tx, path1, path2, recursive, maxdepth)
            if on_error == "raise":
                self._check_there(tx, [source for source, _ in pairs])
            with self._changing():
                for source, target in pairs:
                    for end in ("", "/"):
                        if source != target and source + end in tx:
                            tx.copy(source + end, target + end)

    def _check_there(self, view: View, names: list[str]) -> None:
        for name in names:
            if name not in view and name and not paths.is_folder(view, name):
                raise self._missing(name)

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Copies an object. Of a folder there is nothing to copy but what is in it."""
        self.copy([path1], [path2])

    def mv_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Gives an object another name; one that has it is replaced."""
        self._move([path1], [path2], False, None)

    def mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Moves objects as one change. Nothing is moved into itself."""
        self._move(path1, path2, recursive, maxdepth)

    def _rename(self, view: Any, source: str, target: str) -> None:
        """Gives an object another name, in place of any other."""
        view.remove(target)
        view.rename(source, target)

    def _move(self, path1: Any, path2: Any, recursive: bool, maxdepth: int | None) -> None:
        with self._atomic(make=False) as tx:
            pairs = self._pairs(tx, path1, path2, recursive, maxdepth)
            if not pairs:
                raise InvalidError(f"{path1!r} is a folder; move it with recursive=True")
            self._check_there(tx, [source for source, _ in pairs])
            with self._changing():
                for source, target in pairs:
                    for end in ("", "/"):
                        if source != target and source + end in tx:
                            self._rename(tx, source + end, target + end)

    def rm_file(self, path: str) -> None:
        """Removes an object."""
        with self._writing(make=False) as store:
            del store[self._name_of(path)]

    _rm = rm_file

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Removes objects as one change."""
        with self._atomic(make=False) as tx:
            names = self.expand_path(path, recursive=recursive, maxdepth=maxdepth)
            names = [self._name_of(name) for name in names]
            if not recursive:
                for name in names:
                    if name not in tx:
                        raise self._missing(name)
            with self._changing():
                for name in filter(None, names):
                    tx.remove(name)
                    if recursive:
                        # It stands for the folder.
                        tx.remove(name + "/")

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        """Nothing: a folder is there as soon as something is in it."""

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Nothing, as ``mkdir``."""

    def rmdir(self, path: str) -> None:
        """Nothing: a folder is gone with its last object."""
        if self.isdir(path) and self._name_of(path):
            raise OSError(f"{path!r} is not empty")
