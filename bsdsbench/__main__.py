"""The entry point of `python -m bsdsbench` and of the command bsdsbench."""

import sys


def main() -> None:
    """Run the command line, and exit with status 130 on Ctrl-C, even during the import."""
    try:
        from bsdsbench.cli import main as run

        run()
    except KeyboardInterrupt:
        print("bsdsbench: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
