"""Holdall from Python beside its peers, in turns: ``python bench DIR [--quick] [--json]``.

DIR is on the disk to measure; a full run takes 30 GB of it. Every figure is the median of the
rounds; below it is the spread. Contenders take turns, every second round in reverse.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import shutil
import statistics
import sys
import tempfile
import warnings
from pathlib import Path

import arrays
import loader
import rows

ROWS = rows.ROWS | arrays.ROWS | loader.ROWS


def measure(row: rows.Row, place: Path, quick: bool, rounds: int) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in row.contenders}
    with contextlib.ExitStack() as stack:
        ready = {}
        for name, prepare in row.contenders.items():
            own = place / name
            own.mkdir(exist_ok=True)
            ready[name] = stack.enter_context(prepare(own, quick))
        for turn in range(rounds):
            for name in list(ready)[:: -1 if turn % 2 else 1]:
                gc.collect()
                taken[name].append(ready[name]())
    return taken


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def shown(row: rows.Row, taken: dict[str, list[float]]) -> list[str]:
    median = {name: statistics.median(all_of_it) for name, all_of_it in taken.items()}
    lines = [f"{row.title} ({row.unit})" if row.unit else row.title, f"  goal: {row.goal}"]
    for name, value in median.items():
        ours = median["holdall"] / value
        times = ours if row.more_is_better else 1 / ours
        beside = "" if name == "holdall" else f"   holdall {times:.2f} ×"
        spread = f"{figure(min(taken[name]))} to {figure(max(taken[name]))}"
        lines.append(f"  {name:<12}{figure(value):>12}   {spread:<22}{beside}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--quick", action="store_true", help="small data, one round")
    parser.add_argument("--rounds", type=int, help="default 5; 3 for rows that take long")
    parser.add_argument("--rows", help=f"only these, of {', '.join(ROWS)}")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    chosen = given.rows.split(",") if given.rows else list(ROWS)
    if unknown := set(chosen) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    # A zip file keeps what is overwritten, and warns.
    warnings.filterwarnings("ignore", "Duplicate name")
    found = {}
    with tempfile.TemporaryDirectory(dir=given.directory) as place:
        for name in chosen:
            row = ROWS[name]
            print(f"{row.title} ..", file=sys.stderr)
            # Rows of one family measure one store after the other.
            own = Path(place) / name.split("-")[0]
            own.mkdir(exist_ok=True)
            rounds = given.rounds or (1 if given.quick else 5)
            found[name] = measure(row, own, given.quick, rounds)
            if not given.json:
                print("\n".join(shown(row, found[name])), flush=True)
            last = [n for n in chosen if n.split("-")[0] == own.name][-1]
            if name == last:
                shutil.rmtree(own)
    if given.json:
        json.dump(found, sys.stdout, indent=1)
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
