"""python -m bsdsbench, and the command bsdsbench."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C while it is still being imported is no traceback either."""
    try:
        from bsdsbench.cli import main as run

        run()
    except KeyboardInterrupt:
        print("bsdsbench: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
