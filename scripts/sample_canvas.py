"""Textures, shapes and a canvas for the made sample: pictures that know their own objects.

A scene is painted back to front on a `Canvas`. Each `paint` call is one object: it has a coverage
mask, a colour, a parent (what is seen once the object is left out) and a salience: 0 = everybody
would outline it, 1 = only the most patient annotator would, more = nobody.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi
from skimage import draw

F = NDArray[np.float64]
Rng = np.random.Generator
Colour = str | Sequence[float] | F
LIGHT = np.array([-0.55, -0.45, 0.70])  # towards the light: (row, column, viewer)


# red, green and blue in percent
COLOURS = """
cloud            96  95  93
morning haze     78  84  90
evening haze     93  80  68
morning sky      35  55  82
evening sky      45  48  68
wood             16  25  18
dark land        22  20  20
rock             30  27  25
sail             95  93  88
lake             13  22  28
town sky         42  60  86
town haze        86  90  94
paving           47  45  43
plaster          72  60  50
clay tiles       45  24  18
slate            30  30  34
dark glass       10  13  17
bright glass     45  55  66
trunk            28  21  16
green crown      20  34  12
olive crown      34  36  12
sand             66  58  47
grey stone       50  49  48
wallpaper        52  50  44
table            48  31  19
glaze            55  58  62
apple            78  18  12
orange           86  50  10
lime             62  68  16
quince           80  68  22
plum             36  12  22
stalk            25  18  10
shade             6  11   5
sunlit leaves    36  42  18
leaf             20  40  10
yellow leaf      45  50  14
brown leaf       55  30  10
blue leaf        12  32  16
plain sky        50  63  80
plain haze       88  86  80
far wood         34  38  30
pale grass       66  61  42
dry grass        52  46  24
zebra            86  83  78
zebra stripe     14  12  11
deer             70  50  30
deer spot        93  90  84
deep water        5  25  42
shallow water    30  66  76
reef             42  36  34
red coral        85  42  38
yellow coral     80  62  30
purple coral     62  36  60
pale coral       85  75  62
far coral        10  34  48
yellow fish      95  72  12
orange fish      90  40  15
silver fish      85  85  88
blue fish        35  45  85
far fish         16  42  55
eye               5   5   5
meadow shade     14  24   8
meadow light     50  58  28
stem             30  42  14
daisy            93  90  88
buttercup        90  72  16
mallow           80  38  55
scabious         58  44  78
pollen           62  42  10
"""
_RGB = {line[:16].strip(): np.array(line[16:].split(), float) / 100 for line in COLOURS.split("\n")}


def rgb(colour):
    """A colour in [0, 1], (3,) by its name or (H, W, 3)."""
    return _RGB[colour] if isinstance(colour, str) else np.asarray(colour)


# ---- textures and shapes ------------------------------------------------------------------------


def fractal(rng, shape, beta=2.0, stretch=(1, 1)):
    """Noise of spectrum 1/f^beta, zero mean, unit variance; `stretch` lengthens its grain."""
    fy = np.fft.fftfreq(shape[0])[:, None] * stretch[0]
    fx = np.fft.rfftfreq(shape[1])[None] * stretch[1]
    spectrum = np.fft.rfft2(rng.standard_normal(shape))
    field = np.fft.irfft2(spectrum / np.maximum(np.hypot(fy, fx), 0.004) ** (beta / 2), s=shape)
    return (field - field.mean()) / field.std()


def ellipse(y, x, cy, cx, ry, rx):
    """About the signed distance to an ellipse, negative inside."""
    return (np.hypot((y - cy) / ry, (x - cx) / rx) - 1) * min(ry, rx)


def capsule(y, x, a, b, ra, rb):
    """About the signed distance to a bar from a to b (row, column), radius ra at a and rb at b."""
    (ay, ax), (by, bx) = a, b
    length = max((by - ay) ** 2 + (bx - ax) ** 2, 1e-6)
    t = unit(((y - ay) * (by - ay) + (x - ax) * (bx - ax)) / length)
    return np.hypot(y - ay - t * (by - ay), x - ax - t * (bx - ax)) - (ra + t * (rb - ra))


def union(parts, k=3.0):
    """Smooth union of signed distances."""
    return -k * np.logaddexp.reduce([-p / k for p in parts])


def unit(values):
    """Values cut to [0, 1]."""
    return np.clip(values, 0, 1)


def cover(distance):
    """Antialiased coverage of a signed distance."""
    return unit(0.5 - distance)


def shading(distance, depth, relief=0.0):
    """Lambert shading of a shape swollen to `depth` pixels, plus a bumpy relief."""
    t = unit(-ndi.gaussian_filter(distance, 1) / depth)
    height = depth * np.sqrt(1 - (1 - t) ** 2) + relief
    gy, gx = np.gradient(ndi.gaussian_filter(height, 1.5))
    lambert = (-gy * LIGHT[0] - gx * LIGHT[1] + LIGHT[2]) / np.sqrt(gy**2 + gx**2 + 1)
    return 0.38 + 0.85 * unit(lambert)


def mix(a, b, t):
    """Colour a where t = 0, b where t = 1."""
    t = np.asarray(t, float)[..., None]
    return rgb(a) * (1 - t) + rgb(b) * t


def lit(colour, light):
    """A colour under a light that differs from pixel to pixel."""
    return rgb(colour) * light[..., None]


class Canvas:
    """The picture so far: rgb in [0, 1], each pixel's topmost object, and what is behind it."""

    def __init__(self, shape, rng):
        self.shape, self.rng, self.uniform, self.normal = shape, rng, rng.uniform, rng.normal
        self.choice, self.integers, self.random = rng.choice, rng.integers, rng.random
        self.y, self.x = np.mgrid[: shape[0], : shape[1]].astype(float)
        self.rgb = np.zeros((*shape, 3))
        self.labels = np.zeros(shape, np.int32)
        self.parent: list[int] = [0]
        self.salience: list[float] = [0.0]

    def fractal(self, beta=2.0, stretch=(1, 1)):
        """Noise of spectrum 1/f^beta over the picture."""
        return fractal(self.rng, self.shape, beta, stretch)

    def ridge(self, smooth, beta=2.2):
        """A one-dimensional fractal line of unit variance."""
        width = self.shape[1]
        f = np.maximum(np.fft.rfftfreq(width), 1 / width)
        line = np.fft.irfft(np.fft.rfft(self.rng.standard_normal(width)) / f ** (beta / 2), n=width)
        line = ndi.gaussian_filter1d(line, smooth) if smooth else line
        return (line - line.mean()) / line.std()

    def ellipse(self, *at):
        """About the signed distance to an ellipse, as `ellipse` has it."""
        return ellipse(self.y, self.x, *at)

    def capsule(self, *at):
        """About the signed distance to a bar, as `capsule` has it."""
        return capsule(self.y, self.x, *at)

    def blob(self, cy, cx, r, flat=1.0, rough=0.12):
        """About the signed distance to a pebble: an ellipse with a wavy radius."""
        angle = self.rng.uniform(0, np.pi)
        c, s = np.cos(angle), np.sin(angle)
        v, u = ((self.y - cy) * c - (self.x - cx) * s) / flat, (self.y - cy) * s + (self.x - cx) * c
        theta = np.arctan2(v, u)
        radius = np.full(self.shape, r)
        for k in range(2, 8):
            wave = r * rough * self.rng.normal() / k
            radius += wave * np.cos(k * theta + self.uniform(0, 2 * np.pi))
        return np.hypot(v, u) - radius

    def polygon(self, points):
        """Coverage of a polygon of (row, column) corners."""
        inside = draw.polygon2mask(self.shape, np.array(points))
        return ndi.gaussian_filter(inside.astype(float), 0.5)

    def paint(self, distance, *how, **more):
        """Fill a signed distance: an object on top."""
        return self.fill(cover(distance), *how, **more)

    def fill(
        self,
        mask,
        colour,
        salience,
        light=None,
        parent=None,
    ):
        """Paint an object on top and return its label; an unseen one is painted all the same."""
        colour = colour if light is None else lit(colour, light)
        solid = mask > 0.5
        under = np.bincount(self.labels[solid], minlength=1)
        self.parent.append(int(under.argmax()) if parent is None else parent)
        self.salience.append(salience)
        self.rgb = mix_mask(self.rgb, colour, mask)
        label = len(self.parent) - 1
        self.labels[solid] = label
        return label

    def shadow(self, distance, dy, dx, blur, strength):
        """Darken what lies below and to the right of a shape."""
        dark = ndi.gaussian_filter(ndi.shift(cover(distance), (dy, dx), order=1), blur)
        self.rgb = self.rgb * (1 - strength * dark[..., None])

    def blur(self, sigma):
        """Put all that is painted so far out of focus."""
        self.rgb = ndi.gaussian_filter(self.rgb, (sigma, sigma, 0))


def mix_mask(below, colour, mask):
    """`colour` (3,) or (H, W, 3) over `below` where mask is 1."""
    return below * (1 - mask[..., None]) + rgb(colour) * mask[..., None]
