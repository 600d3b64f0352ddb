"""Names of the differences between two signatures, and their usual effect on scores.

Sizes are of published counts or of our own runs; each says of which.
"""

from __future__ import annotations

# word of the signature -> (what it is, what it usually costs)
COSTS: dict[str, tuple[str, str]] = {
    "set": ("images", "scores of other images are not comparable"),
    "gt": ("ground truth", "the same names, other annotations: scores are not comparable"),
    "ann": (
        "annotators",
        "all of them count in the benchmark; with one, precision falls, as pixels that only "
        "others drew are false",
    ),
    "pred": ("kind of prediction", ""),
    "proto": ("preset", ""),
    "thr": ("thresholds", "fewer of them lose AP at both ends of the curve"),
    "tol": ("tolerance", "a larger one raises every score"),
    "match": (
        "matching",
        "many to one raises ODS by some .04: .8038 against .7657 on the first 40 images of HED",
    ),
    "nms": ("edge NMS", "without it thick edges cost precision"),
    "thin": ("thinning", "unthinned edges cost precision; many-to-one matching hides that"),
    "op": ("threshold operator", "moves only pixels exactly at a threshold"),
    "ods": ("ODS rule", "interpolation adds little with 99 thresholds, more with few"),
    "ap": (
        "AP rule",
        "on BSDS500 test: edter +.019 to +.024 over bsds (four sets of SAUGE), on NYUD +.041; "
        "endpoints +.017 (HED .840 to .858); seism +.010 (COB .849 to .859); ODS and OIS stay",
    ),
}
