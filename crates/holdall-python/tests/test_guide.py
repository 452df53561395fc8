"""The examples of docs/python.md run, one after the other."""

import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "python.md"


def test_the_guide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) == 5
    space = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), space)
