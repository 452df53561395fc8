"""Which instance of fsspec's file system stands for which store."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from fsspec.config import apply_config  # type: ignore[import-untyped, unused-ignore]
from fsspec.spec import _Cached  # type: ignore[import-untyped, unused-ignore]
from fsspec.utils import tokenize  # type: ignore[import-untyped, unused-ignore]

from holdall._bucket import BucketStore, is_in_bucket
from holdall._fspaths import absolute
from holdall._shared import number_of
from holdall._store import Store

#: Protocols of files of this machine.
LOCAL = (None, "file", "local")
#: Arguments by their places.
PLACES = ("fo", "mode", "target_protocol", "target_options")


class Instances(_Cached):  # type: ignore[misc, unused-ignore]
    """Which file system a call of the class gives: one for each store, mode and set of options.

    fsspec knows instances by the text of their arguments. A path is made absolute first. Of an
    open store the instance lives no longer than its users.
    """

    #: Whether stores are files; of those in buckets another class is.
    in_file = True

    _of_stores: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) > len(PLACES):
            raise TypeError(f"at most {len(PLACES)} arguments have no name")
        for place, value in zip(PLACES, args):
            if place in kwargs:
                raise TypeError(f"{place} is given twice")
            kwargs[place] = value
        kwargs = apply_config(cls, kwargs)
        store = kwargs.get("fo", "")
        in_bucket = isinstance(store, BucketStore) or is_in_bucket(store)
        if in_bucket and cls.in_file:
            from holdall._fsbucket import HoldallBucketFileSystem

            return HoldallBucketFileSystem(**kwargs)
        if isinstance(store, (Store, BucketStore)):
            return cls._of_store(store, kwargs)
        if store and not in_bucket and kwargs.get("target_protocol") in LOCAL:
            kwargs["fo"] = absolute(store)
            kwargs.pop("target_protocol", None)
            kwargs.pop("target_options", None)
        if kwargs.get("mode") == "a":
            del kwargs["mode"]
        return super().__call__(**kwargs)

    def _of_store(cls, store: Store | BucketStore, kwargs: dict[str, Any]) -> Any:
        kept = not kwargs.pop("skip_instance_cache", False) and cls.cachable
        others = {name: value for name, value in kwargs.items() if name != "fo"}
        token = tokenize(cls, os.getpid(), threading.get_ident(), number_of(store), **others)
        found = cls._of_stores.get(token) if kept else None
        if found is None:
            found = super().__call__(**kwargs, skip_instance_cache=True)
            found._fs_token_ = token
            if kept:
                cls._of_stores[token] = found
        return found
