"""Progress of long calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

Progress = Union[bool, Callable[[int, int], object], None]


class Meter:
    """Calls a progress function, or shows a bar if tqdm is installed."""

    def __init__(self, progress: Progress, what: str):
        self.call: Callable[[int, int], object] | None = None
        self.bar: Any = None
        if progress is True:
            try:
                from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
            except ImportError:
                return
            self.bar = tqdm(desc=what, unit="B", unit_scale=True)
            self.call = self._bar
        elif callable(progress):
            self.call = progress

    def _bar(self, done: int, total: int) -> None:
        self.bar.total = total or None
        self.bar.update(done - self.bar.n)

    def __enter__(self) -> Callable[[int, int], object] | None:
        return self.call

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()
