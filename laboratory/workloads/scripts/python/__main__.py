"""One package's part of one round: ``python python DIR --contestant NAME [--quick] [--rows A,B]``.

Prints a line of JSON for each row that the contestant has. DIR is on the disk to measure; a full
run takes 10 GB of it.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import warnings
from pathlib import Path

import arrays
import loader
import rows

ROWS = rows.ROWS | arrays.ROWS | loader.ROWS


def measure(prepare: rows.Prepare, place: Path, quick: bool) -> float:
    place.mkdir(exist_ok=True)
    with prepare(place, quick) as ready:
        gc.collect()
        return ready()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python", description=__doc__)
    parser.add_argument("directory", type=Path)
    names = sorted({name for row in ROWS.values() for name in row.contestants})
    parser.add_argument("--contestant", choices=names, required=True)
    parser.add_argument("--holdall", help="not used: the package is installed")
    parser.add_argument("--quick", action="store_true", help="small data")
    parser.add_argument("--rows", help=f"only these, of {', '.join(ROWS)}")
    given = parser.parse_args()
    chosen = given.rows.split(",") if given.rows else list(ROWS)
    if unknown := set(chosen) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    # A zip file keeps what is overwritten, and warns.
    warnings.filterwarnings("ignore", "Duplicate name")
    chosen = [name for name in chosen if given.contestant in ROWS[name].contestants]
    for name in chosen:
        row = ROWS[name]
        # Rows of one family measure one store after the other.
        family = name.split("-")[0]
        place = given.directory / family
        value = measure(row.contestants[given.contestant], place, given.quick)
        print(json.dumps({"row": row.title, "unit": row.unit, "value": value}), flush=True)
        if name == [n for n in chosen if n.split("-")[0] == family][-1]:
            shutil.rmtree(place)


if __name__ == "__main__":
    main()
