"""Files that are written whole or not at all, with the rights of what they stand for."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO


def _mask() -> int:
    """The mask of new files. Where the system tells it only by setting another, that is a strict
    one, for a moment."""
    with suppress(OSError, ValueError, StopIteration), open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("Umask:")).split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _set_rights(number: int, target: str, mode: bytes | str | None) -> None:
    """Gives a new file the owner and mode of the file it replaces; if there is none, of `mode` what
    the mask leaves."""
    try:
        old = os.stat(target)
    except FileNotFoundError:
        try:
            wanted = 0o666 if mode is None else int(mode, 8)
        except ValueError:
            wanted = 0o666
        # A file system without such bits has its own rules.
        with suppress(OSError):
            os.fchmod(number, wanted & 0o777 & ~_mask())
        return
    bits = stat.S_IMODE(old.st_mode) & 0o777
    try:
        os.fchown(number, old.st_uid, old.st_gid)
    except OSError:
        try:
            os.fchown(number, -1, old.st_gid)
        except OSError:
            # In another group it may do what all others may.
            bits &= 0o707 | (bits & 7) << 3
    with suppress(OSError):
        os.fchmod(number, bits)


@contextmanager
def replacing(target: str, mode: bytes | str | None) -> Iterator[IO[bytes]]:
    """A file for its owner only that takes the place of `target` in the end, if all goes well."""
    folder = os.path.dirname(target) or "."
    os.makedirs(folder, exist_ok=True)
    number, name = tempfile.mkstemp(prefix=".holdall-", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(number, "wb") as file:
            yield file
            file.flush()
            _set_rights(file.fileno(), target, mode)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
