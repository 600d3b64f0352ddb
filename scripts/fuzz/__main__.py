"""Everything here is called as `python scripts/fuzz KIND --count N --seed S`.

KIND is hostile (files and folders), large (files as large as allowed) or
guided (by coverage, with atheris). Each prints what it tried and its failures; exit status 1 if
there are any.
"""

import argparse
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("kind", choices=["hostile", "large", "guided"])
    parser.add_argument("--count", type=int, default=1000, help="inputs or seconds")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="large, guided: whose name holds this")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.kind == "hostile":
        import hostile

        if args.child:
            hostile.child(args.first, args.first + args.count, args.seed, args.child)
            return 0
        failures = hostile.run(args.first, args.count, args.seed)
    elif args.kind == "large":
        import large

        failures = large.run(args.only)
    else:
        import guided

        failures = guided.run(args.only, args.count, args.seed)
    print(*failures[:30], f"{len(failures)} failures", sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
