"""How often 95 % intervals hold the true value where frames of a scene are alike.

    python scripts/coverage_of_clusters.py [--sets 400]

Each set has 24 scenes of five frames; the share of matched pixels of a frame is .6, and what the
scene (standard deviation .12) and the frame (.04) add. Intervals are those of `compare`, with the
scenes as clusters and without.
"""

from __future__ import annotations

import argparse

from tests.comparison.test_clusters import covered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=400)
    n_sets = parser.parse_args().sets
    for cluster in (True, False):
        share = covered(n_sets, cluster=cluster)
        print(f"{'by scene' if cluster else 'by frame'}: {share:.3f} of {n_sets} sets")


if __name__ == "__main__":
    main()
