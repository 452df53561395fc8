"""Names in a store as fsspec writes them: what a URL leads to, and what lies below a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from fsspec.implementations.local import (  # type: ignore[import-untyped, unused-ignore]
    LocalFileSystem,
)
from fsspec.utils import other_paths  # type: ignore[import-untyped, unused-ignore]

from holdall._shared import checked
from holdall._store import View
from holdall.errors import InvalidError

SUFFIX = ".holdall"
_CHAINED = re.compile(r"::(file|local)://.*$", re.DOTALL)


def absolute(path: Any) -> str:
    """The path of a store's file, absolute from now on."""
    return str(os.path.abspath(LocalFileSystem._strip_protocol(checked(os.fsdecode(path)))))


def split(url: str) -> tuple[str | None, str]:
    """The store's path in a URL without protocol, and the name within the store."""
    at = (url + "/").find(SUFFIX + "/")
    if at < 0:
        return None, url
    end = at + len(SUFFIX)
    return url[:end], url[end + 1 :]


def without_protocol(url: str) -> tuple[str, bool]:
    """A URL without protocol and chained store, and whether it had a protocol."""
    for start in ("holdall://", "holdall::"):
        if url.startswith(start):
            return _CHAINED.sub("", url[len(start) :]), True
    return url, False


def parts_of(text: str) -> tuple[str | None, str]:
    """The absolute path of the store that a URL or long name begins with, and the name in it.

    A long name is what a URL is without its protocol: `/data/a.holdall/x`. The slashes that end a
    name are dropped, one before it is kept.
    """
    url, had = without_protocol(text)
    chained = _CHAINED.search(text) if had else None
    if chained:
        return absolute(chained.group()[2:]), url.rstrip("/")
    if not had and not text.startswith("/"):
        return None, text.rstrip("/")
    store, name = split(url)
    return absolute(store) if store else None, name.rstrip("/")


def name_of(text: str) -> str:
    """The long name of a URL, if it has a store; else the name alone."""
    if _CHAINED.search(text):
        return parts_of(text)[1]
    store, name = parts_of(text)
    return f"{store}/{name}".rstrip("/") if store else name


def url_of(path: str, name: str) -> str:
    """The URL that leads to a name in the store of that path."""
    whole = f"{path}/{name}"
    if split(whole) == (path, name):
        return f"holdall://{whole}"
    return f"holdall://{name}::file://{path}"


def is_folder(view: View, name: str) -> bool:
    """Whether there is a name below this one."""
    return next(iter(view.names(name + "/")), None) is not None


def level(view: View, prefix: str, start: str = "") -> Iterator[tuple[str, bool]]:
    """What lies right below a prefix and begins with `start`: names, and whether each is a folder.

    A folder without a name cannot be written as fsspec writes folders; what is in it comes as if
    it were here. A name that ends in a slash stands for its folder and does not come.
    """
    after: str | None = None
    while True:
        page = view.list(prefix + start, "/", start_after=after)
        for folder in page.prefixes:
            if folder == prefix + "/":
                yield from ((name, False) for name in view.names(folder) if name[-1:] != "/")
            else:
                yield folder[:-1], True
        yield from ((name, False) for name in page.names if name[-1:] != "/")
        after = page.next
        if after is None:
            return


def below(view: View, prefix: str, depth: int | None, start: str) -> Iterator[tuple[str, bool]]:
    """As `level`, and what lies in the folders, as deep as asked."""
    if depth is not None:
        for name, folder in level(view, prefix, start):
            yield name, folder
            if folder and depth > 1:
                yield from below(view, name + "/", depth - 1, "")
        return
    seen: set[str] = set()
    for name in view.names(prefix + start):
        at = name.find("/", len(prefix))
        while at >= 0:
            parent = name[:at]
            if parent not in seen and parent[-1:] not in ("", "/"):
                seen.add(parent)
                yield parent, True
            at = name.find("/", at + 1)
        if name[-1:] != "/":
            yield name, False


def targets(sources: list[str], path: Any, inside: bool, flat: bool) -> list[str]:
    """Where copies of names go; `path` is a folder for them, or the new name of their folder."""
    if isinstance(path, list):
        if len(path) != len(sources):
            raise ValueError(f"{len(sources)} sources have {len(path)} targets")
        return path
    if not sources:
        return []
    # With a slash before each, the top of a store is a folder like others.
    found = other_paths(["/" + name for name in sources], "/" + path, exists=inside, flatten=flat)
    return [name[1:] for name in found]


def check_pairs(view: View, pairs: list[tuple[str, str]]) -> None:
    """Refuses copies into themselves, and those of which one would undo another."""
    seen: set[str] = set()
    sources = {source for source, _ in pairs}
    for source, target in pairs:
        if source == target:
            seen.add(target)
            continue
        if not target:
            raise InvalidError(f"{source!r} cannot take the place of the whole store")
        if not source or target.startswith(source + "/"):
            raise InvalidError(f"{source!r} cannot be put into itself as {target!r}")
        if source not in view:
            continue
        if target in seen:
            raise InvalidError(f"two objects would be named {target!r}; nothing was changed")
        if target in sources and target in view:
            raise InvalidError(f"{target!r} is a source and a target; nothing was changed")
        seen.add(target)
