"""The boundary F of DAVIS (Perazzi et al., CVPR 2016) as another package has it: this file and an
entry point. Boundaries of two masks meet within 0.008 of the image's diagonal, many to one."""

import math

import numpy as np
from attrs import field, frozen
from scipy.ndimage import binary_dilation, binary_fill_holes

from bsdsbench import seg2bdry
from bsdsbench.metrics import Column, Metric
from bsdsbench.protocol.fields import BOOL, POSITIVE


@frozen
class DavisOptions:
    bound: float = field(
        default=0.008,
        validator=POSITIVE,
        metadata={"help": "Tolerance.", "caption": "bound {:g}", "others": {0.02: "wide"}},
    )
    fill: bool = field(
        default=False, validator=BOOL, metadata={"help": "Holes of both are filled."}
    )


class DavisBoundary(Metric):
    """Mean over images of F of the boundaries of both masks, and F of all images' pixels."""

    name, title, reads, options = "davis-f", "DAVIS boundary F", "classes", DavisOptions
    default_protocol = "masks"
    columns = (
        Column("f", "boundary F", "F"),
        Column("precision", "precision", "P"),
        Column("pooled", "F of all pixels", shown="own"),
    )
    image_columns = columns[:1]

    def count(self, pred, gt, protocol, opt):
        (mine, near), (theirs, around) = _near(pred.classes > 0, opt), _near(gt.labels > 0, opt)
        four = (mine & around).sum(), mine.sum(), (theirs & near).sum(), theirs.sum()
        return {"four": four}  # found and all of the prediction, of the ground truth

    @np.errstate(invalid="ignore", divide="ignore")
    def scores(self, stack, weights, protocol, opt):
        def shares(four):  # NaN where there is nothing to have a share of
            p, r = four[..., 0] / four[..., 1], four[..., 2] / four[..., 3]
            return np.array([p, np.where(p + r == 0, 0, 2 * p * r / (p + r))])

        own = shares(stack["four"])
        there = ~np.isnan(own)
        precision, f = np.where(there, own, 0) @ weights.T / (there @ weights.T)
        return {"f": f, "precision": precision, "pooled": shares(weights @ stack["four"])[1]}


def _near(mask, opt):
    edge = seg2bdry(binary_fill_holes(mask) if opt.fill else mask)
    radius = math.ceil(opt.bound * math.hypot(*mask.shape))
    y, x = np.ogrid[-radius : radius + 1, -radius : radius + 1]
    return edge, binary_dilation(edge, y * y + x * x <= radius * radius)
