"""For the site: examples in docstrings are shown as code. Loaded by mkdocs.yml."""

import re
from typing import Any

import griffe

#: A line that begins an example, and all lines up to the next empty one.
EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class FencedDoctests(griffe.Extension):  # type: ignore[misc]
    """Puts fences around doctests."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            value = obj.docstring.value
            obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", value)

    # Modules have an event of their own.
    def on_module(self, *, mod: griffe.Module, **_: Any) -> None:
        self.on_object(obj=mod)
