"""The ways of four users, from the first line to the last: `python scripts/walks KIND`.

KIND is readme (README and quick start as they stand), student (twelve mistakes), ci (a gate, the
pytest fixture, JSON) or crops (thousands of small images: shards, Dask, Ctrl-C). Each prints every
command and what it said, so that a person can read it; exit status 1 if an expectation is not met.
"""

import argparse
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from walk import Walk

KINDS = ("readme", "student", "ci", "crops")


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/walks", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--count", type=int, default=3000, help="crops")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        walk = Walk(Path(folder))
        import_module(args.kind).go(walk, args.count)
    print(*walk.failures, f"{args.kind}: {len(walk.failures)} expectations not met", sep="\n")
    return 1 if walk.failures else 0


if __name__ == "__main__":
    sys.exit(main())
