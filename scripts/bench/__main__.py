"""All that is timed is called as `python scripts/bench KIND ...`, with `--help` for the rest.

KIND is boundary (stages, kernels, sizes and memory on a folder of maps), contours (measures of
masks against other packages), curves (against scikit-learn), depth (against scikit-image's Canny), regions (against scikit-image), turns (two states of the project in
turn), or scale (thousands of images).
Under pytest-benchmark: `just bench`.
"""

import sys
from importlib import import_module

KINDS = ("boundary", "contours", "curves", "depth", "regions", "turns", "scale")

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in KINDS:
        print(__doc__)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
    kind = sys.argv.pop(1)
    sys.argv[0] = f"scripts/bench {kind}"
    import_module(kind).main()
