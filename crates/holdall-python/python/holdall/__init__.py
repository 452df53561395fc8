"""An embedded, transactional object store in one file.

>>> import holdall
>>> with holdall.open(path, "a") as store:
...     store["greeting"] = b"hello"
...     store.insert("greeting", 0, b"oh, ")
...     store["greeting"]
9
b'oh, hello'
"""

import sys
import warnings

from holdall._core import Info, ObjectId
from holdall._bucket import BucketInfo, BucketStore, Reach
from holdall._store import (
    Collection,
    Listing,
    Options,
    Snapshot,
    Store,
    Transaction,
    View,
    in_memory,
    open,
    restore,
    salvage,
)
from holdall._files import ObjectFile, ObjectReader, ObjectWriter
from holdall.errors import (
    BusyError,
    ConflictError,
    CorruptError,
    Error,
    ExistsError,
    ForkedError,
    FullError,
    InvalidError,
    LockedError,
    MovedError,
    NotAStoreError,
    NotFoundError,
    NotInBucketError,
    NotStoredWarning,
    OffsetError,
    OutcomeUnknownError,
    PoisonedError,
    ReadOnlyError,
    SnapshotTooOldError,
    UnsupportedError,
    WrongLogError,
)

from holdall._core import __version__

if not sys.warnoptions:
    # Python hides warnings about resources; here it is about bytes that are not stored.
    warnings.simplefilter("default", NotStoredWarning)

__all__ = [
    "BucketInfo",
    "BucketStore",
    "BusyError",
    "Collection",
    "ConflictError",
    "CorruptError",
    "Error",
    "ExistsError",
    "ForkedError",
    "FullError",
    "Info",
    "InvalidError",
    "Listing",
    "LockedError",
    "MovedError",
    "NotAStoreError",
    "NotFoundError",
    "NotInBucketError",
    "NotStoredWarning",
    "ObjectFile",
    "ObjectId",
    "ObjectReader",
    "ObjectWriter",
    "OffsetError",
    "Options",
    "OutcomeUnknownError",
    "PoisonedError",
    "Reach",
    "ReadOnlyError",
    "Snapshot",
    "SnapshotTooOldError",
    "Store",
    "Transaction",
    "UnsupportedError",
    "View",
    "WrongLogError",
    "__version__",
    "in_memory",
    "open",
    "restore",
    "salvage",
]
