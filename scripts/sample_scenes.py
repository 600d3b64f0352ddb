"""The scenes of the made sample, one function each; every pixel comes from formulas and a seed."""

from collections.abc import Callable

import numpy as np
from sample_canvas import (
    Canvas,
    cover,
    ellipse,
    lit,
    mix,
    mix_mask,
    rgb,
    shading,
    union,
    unit,
)
from scipy import ndimage as ndi


def sky(c, top, low, horizon):
    """A graded sky with soft clouds; nobody outlines those."""
    cloud = ndi.gaussian_filter(c.fractal(3.0, (1, 2.5)), 2)
    c.rgb[:] = mix(top, low, unit(c.y / horizon) ** 1.3)
    c.rgb[:] = mix_mask(c.rgb, "cloud", 0.65 * unit(0.6 * cloud - 0.1))


def lake(c):
    """Hazy mountain ranges, a wooded shore and sails, mirrored in rippled water."""
    h, w = c.shape
    level = h * c.uniform(0.58, 0.66)
    warm = c.uniform(0, 1)
    haze = mix("morning haze", "evening haze", warm)
    sky(c, mix("morning sky", "evening sky", warm), haze, level)
    land = mix("wood", "dark land", warm)
    for i, (rise, size, near) in enumerate(((0.36, 0.09, 0.3), (0.2, 0.07, 0.6), (0.06, 0.025, 1))):
        line = level - h * (rise + size * c.ridge(4 - 2 * i, 2.6 - 0.4 * i))
        tone = mix(haze, land, near * 0.85)
        grain = c.fractal(1.6, (1, 1.5)) * (0.03 + 0.05 * near)
        slope = np.gradient(ndi.gaussian_filter(c.fractal(2.6), 1))[1] * 0.5 * near
        c.paint(line[None] - c.y, tone, 0.42 - 0.38 * near, 1 + grain + slope)
    for _ in range(c.integers(2, 4)):
        boat(c, level, c.uniform(0.12, 0.88) * w, c.uniform(22, 60))
    water(c, level)
    for _ in range(3):
        cy = c.uniform(0.86, 1.0) * h
        cx = c.choice([c.uniform(0, 0.25), c.uniform(0.75, 1)])
        rock = c.blob(cy, cx * w, c.uniform(18, 44), 0.6, 0.2)
        c.paint(rock, "rock", 0.15, shading(rock, 22, 3 * c.fractal()))


def boat(c, level, x, size):
    """A hull and two sails standing on the waterline."""
    hull = [(level - 0.16 * size, x - 0.5 * size), (level - 0.2 * size, x + 0.55 * size)]
    hull += [(level + 1, x + 0.35 * size), (level + 1, x - 0.4 * size)]
    tint = mix("sail", c.uniform(0.2, 0.9, 3), c.uniform(0, 0.8))
    glow = (0.82 + 0.25 * unit((c.x - x) / size + 0.5))[..., None]
    foot, top = level - 0.22 * size, level - 1.3 * size
    main = [(foot, x + 0.03 * size), (top, x + 0.03 * size), (foot, x + 0.48 * size)]
    jib = [(foot, x - 0.02 * size), (top + 0.2 * size, x), (foot, x - 0.42 * size)]
    c.fill(c.polygon(main), tint * glow, 0.1)
    c.fill(c.polygon(jib), tint * 0.86 * glow, 0.1)
    c.fill(c.polygon(hull), c.uniform(0.1, 0.45, 3), 0.15)


def water(c, level):
    """Everything above `level`, mirrored, rippled and darkened."""
    below = np.clip(c.y - level, 0, None)
    ripple = ndi.gaussian_filter(c.fractal(1.4, (1, 9)), (0.6, 3))
    row = np.clip(level - below * 1.05 + ripple * (1 + 0.06 * below), 0, level - 1)
    col = c.x + ripple * (0.6 + 0.03 * below)
    how = {"order": 1, "mode": "nearest"}
    seen = [ndi.map_coordinates(layer, (row, col), **how) for layer in np.moveaxis(c.rgb, -1, 0)]
    fade = unit(below / (c.shape[0] - level))
    tone = mix_mask(np.stack(seen, -1) * 0.82, "lake", 0.2 + 0.45 * fade)
    c.paint(level - c.y, tone, 0.0, 1 + 0.07 * ripple, parent=0)


def town(c):
    """House fronts with windows behind a street and trees."""
    h, w = c.shape
    ground = h * c.uniform(0.80, 0.86)
    sky(c, "town sky", "town haze", ground)
    left = -c.uniform(0, 30)
    while left < w:
        width = c.uniform(58, 105)
        house(c, left, left + width, ground, h * c.uniform(0.16, 0.5))
        left += width * c.uniform(0.93, 1.0)
    stone = lit("paving", 1 + 0.07 * c.fractal(0.8, (1, 3)))
    c.paint(ground - c.y, stone, 0.0, parent=0)
    kerb = ground + 0.3 * (h - ground)
    c.paint(kerb - c.y, stone * 0.62, 0.5)
    for _ in range(c.integers(2, 4)):
        tree(c, ground + c.uniform(0, 12), c.uniform(0.05, 0.95) * w, c.uniform(26, 46))


def house(c, x0, x1, ground, top):
    """A wall with a roof, a grid of windows and a door; the light comes from the left."""
    wall = mix("plaster", c.uniform(0.35, 0.9, 3), 0.6)
    rows = np.where((c.y % 6 < 1) | ((c.x + 4 * (c.y // 6 % 2)) % 9 < 1), 0.93, 1.0)
    grain = rows + 0.035 * c.fractal(1.2)
    day = 1.08 - 0.3 * unit((c.x - x0) / (x1 - x0))
    body = c.polygon([(top, x0), (top, x1), (ground, x1), (ground, x0)])
    c.fill(body, wall, 0.12, grain * day)
    peak, eave = top - c.uniform(12, 42), 4
    inset = c.choice([0.0, 0.2, 0.5]) * (x1 - x0)
    roof = [(top, x0 - eave), (peak, x0 + inset), (peak, x1 - inset), (top, x1 + eave)]
    tiles = np.where(c.y % 4 < 1, 0.8, 1.0) + 0.06 * c.fractal(1)
    clay = mix("clay tiles", "slate", c.random())
    c.fill(c.polygon(roof), clay, 0.22, tiles)
    across = c.integers(2, 4)
    step, tall = (x1 - x0) / across, c.uniform(17, 24)
    frame = unit(wall * 1.25)
    for k, y in enumerate(np.arange(ground - 14, top + tall + 8, -tall * 1.75)):
        for i in range(across):
            xc, half = x0 + (i + 0.5) * step, step * 0.26
            low = ground if k == 0 and i == across // 2 else y
            box = [(y - tall, xc - half), (y - tall, xc + half), (low, xc + half), (low, xc - half)]
            outer = [(a + 2 * np.sign(a - y + 5), b + 2 * np.sign(b - xc)) for a, b in box]
            c.rgb = mix_mask(c.rgb, frame, c.polygon(outer) * 0.8)
            bright = c.random() * 0.6 + 0.2 * (c.y - y) / tall
            glass = mix("dark glass", "bright glass", bright)
            c.fill(c.polygon(box), glass, 0.45 + 0.25 * c.random())


def tree(c, foot, x, size):
    """A trunk under a crown of leaf clumps."""
    trunk = c.capsule((foot, x), (foot - 1.5 * size, x + c.normal() * 3), 5, 3)
    crown_y = foot - 1.9 * size
    balls = [
        c.ellipse(crown_y + c.normal() * 0.3 * size, x + c.normal() * 0.4 * size, r, r)
        for r in c.uniform(0.35, 0.65, 8) * size
    ]
    crown = union(balls) + 2.5 * c.fractal(1.6)
    c.shadow(c.ellipse(foot, x + size, 6, size), 0, 0, 4, 0.45)
    c.paint(trunk, "trunk", 0.3)
    leaf = shading(crown, size * 0.7, 2.5 * c.fractal(1.4))
    c.paint(crown, mix("green crown", "olive crown", c.random()), 0.08, leaf)


def stones(c):
    """Overlapping pebbles on sand, large ones on top."""
    h, w = c.shape
    c.rgb[:] = lit("sand", 1 + 0.06 * c.fractal(0.8) + 0.05 * c.fractal(2.4))
    sizes = np.concatenate([c.uniform(5, 11, 30), c.uniform(14, 30, 14), c.uniform(34, 62, 7)])
    for r in sizes:
        cy, cx = c.uniform(0, h), c.uniform(0, w)
        d = c.blob(cy, cx, r, c.uniform(0.6, 0.95), 0.16)
        grain = c.fractal(c.uniform(1.0, 2.2), (1, c.choice([1, 1, 4])))
        tone = mix("grey stone", c.uniform(0.25, 0.85) * np.array([1.0, 0.88, 0.76]), 0.75)
        light = shading(d, 0.75 * r, 0.5 * grain) * (1 + c.uniform(0.04, 0.11) * grain)
        c.shadow(d, 0.12 * r + 1, 0.1 * r + 1, 0.08 * r + 1, 0.6)
        c.paint(d, tone, 0.85 if r < 12 else 0.35 if r < 31 else 0.05, light)


def fruit(c):
    """A jug and fruit on a table in front of a papered wall."""
    h, w = c.shape
    edge = h * c.uniform(0.52, 0.6)
    paper = 0.5 + 0.5 * np.tanh(4 * np.sin(c.x / c.uniform(5, 8)))
    base = mix("wallpaper", c.uniform(0.3, 0.75, 3), 0.5)
    fall = 1.15 - 0.55 * c.x / w + 0.02 * c.fractal(1)
    c.rgb[:] = lit(mix(base, base * 0.9, paper), fall)
    grain = c.fractal(1.8, (1, 14))
    table = lit("table", 0.85 + 0.35 * (c.y - edge) / (h - edge) + 0.09 * grain)
    c.paint(edge - c.y, table, 0.0)
    jug(c, edge + 0.16 * h, w * c.uniform(0.25, 0.75), h * c.uniform(0.42, 0.5))
    for y in sorted(c.uniform(edge + 0.08 * h, h * 0.9, 7)):
        r = c.uniform(24, 40)
        globe(c, y - 0.5 * r, c.uniform(0.08, 0.92) * w, r)


def jug(c, foot, x, tall):
    """A turned vessel with a painted band."""
    t = unit((foot - c.y) / tall)
    a, b = c.uniform(0.24, 0.30), c.uniform(0.08, 0.12)
    half = tall * (0.13 + a * np.sin(np.pi * unit(t * 1.25)) ** 0.8 * (1 - 0.4 * t) + b * t**6)
    inside = np.maximum(np.abs(c.x - x) - half, np.maximum(c.y - foot, foot - tall - c.y))
    u = np.clip((c.x - x) / half, -1, 1)
    light = 0.35 + 0.8 * unit(0.55 * np.sqrt(1 - u**2) - 0.55 * u + 0.2)
    gloss = 0.5 * np.exp(-(((u + 0.5) / 0.1) ** 2))
    clay = mix(c.uniform(0.25, 0.8, 3), "glaze", 0.4)
    c.shadow(inside, 6, 22, 10, 0.5)
    body = c.paint(inside, lit(clay, light) + gloss[..., None], 0.02)
    band = np.maximum(inside, np.abs(t - 0.45 - 0.02 * u**2) * tall - 0.07 * tall)
    c.paint(band, lit(clay[::-1] * 0.8, light) + gloss[..., None], 0.6, parent=body)


def globe(c, cy, cx, r):
    """A fruit: a shaded globe with a bright spot, a blush and a stalk."""
    d = c.blob(cy, cx, r, c.uniform(0.88, 1.0), 0.05)
    one, two = c.choice(["apple", "orange", "lime", "quince", "plum"], 2, replace=False)
    blush = 1 / (1 + np.exp(-2 * c.fractal(3.2)))
    gloss = 0.55 * np.exp(
        -((c.y - cy + 0.4 * r) ** 2 + (c.x - cx + 0.35 * r) ** 2) / (0.13 * r) ** 2
    )
    light = shading(d, 0.95 * r) * (1 + 0.04 * c.fractal(1.0))
    c.shadow(c.ellipse(cy + 0.85 * r, cx + 0.5 * r, 0.3 * r, 1.1 * r), 0, 0, 5, 0.6)
    skin = lit(mix(one, mix(one, two, 0.5), blush), light)
    c.paint(d, unit(skin + gloss[..., None]), 0.04)
    stalk = c.capsule((cy - 0.8 * r, cx), (cy - 1.2 * r, cx + 0.2 * r), 1.8, 1.3)
    c.paint(stalk, "stalk", 0.7)


def leaves(c):
    """Sharp leaves in front of blurred ones."""
    h, w = c.shape
    c.rgb[:] = mix("shade", "sunlit leaves", 1 / (1 + np.exp(-c.fractal(2.6))))
    for sigma, count, salience in ((7.0, 14, 1.5), (3.0, 8, 0.55), (0.0, 9, 0.06)):
        for _ in range(count):
            size = c.uniform(60, 110)
            leaf(c, c.uniform(0, h), c.uniform(0, w), size, salience, not sigma)
        if sigma:
            c.blur(sigma)


def leaf(c, cy, cx, size, salience, crisp):
    """A pointed blade with a bent midrib, two halves in different light, and side veins."""
    angle = c.uniform(0, 2 * np.pi)
    s, k = np.sin(angle), np.cos(angle)
    u, v = (c.y - cy) * s + (c.x - cx) * k, (c.y - cy) * k - (c.x - cx) * s
    v = v + c.uniform(-0.3, 0.3) * u**2 / size
    t = np.clip(u / size, -1, 1)
    half = size * c.uniform(0.3, 0.42) * np.sqrt(unit(1 - t**2)) * (1 - 0.45 * t)
    d = np.maximum(np.abs(v) - half, np.abs(u) - size)
    green = mix("leaf", c.choice(["yellow leaf", "brown leaf", "blue leaf"]), c.random())
    side = np.tanh(v / 2)
    vein = np.exp(-((np.sin((u - 0.8 * np.abs(v)) * 2 * np.pi / (size * 0.22)) / 0.16) ** 2))
    light = 0.82 + 0.14 * side * np.sign(k) + 0.13 * vein + 0.05 * c.fractal(1.5)
    light = light + 0.25 * np.exp(-((v / 1.5) ** 2)) - 0.25 * (np.abs(v) / (half + 1)) ** 3
    c.shadow(d, 7, 5, 5, 0.55)
    blade = c.paint(d, green * 1.25, salience, light)
    if crisp:
        c.paint(np.maximum(d, v), green * 1.12, 0.72, light, parent=blade)


def herd(c):
    """Striped or spotted animals in dry grass under far trees."""
    h, w = c.shape
    line = h * c.uniform(0.3, 0.4)
    sky(c, "plain sky", "plain haze", line)
    wood = line - 14 - 8 * c.ridge(1.0, 2.0)
    far = lit("far wood", 1 + 0.14 * c.fractal(1.4))
    c.paint(wood[None] - c.y, far, 0.2)
    blades = ndi.gaussian_filter(c.fractal(0.9, (5, 1)), (1.5, 0.5))
    depth = unit((c.y - line) / (h - line))
    dry = mix("pale grass", "dry grass", depth)
    dry = lit(dry, 1 + (0.05 + 0.16 * depth) * blades + 0.07 * c.fractal(2.6))
    c.paint(line + 2 * c.ridge(2)[None] - c.y, dry, 0.0)
    striped = bool(c.integers(2))
    places = sorted(c.uniform(0.56, 0.9, 4))
    for y, x in zip(places, c.rng.permutation([0.14, 0.38, 0.62, 0.86]) * w, strict=True):
        size = 26 + 100 * (y - 0.52)
        animal(c, y * h, x + c.normal() * 10, size, c.choice([-1, 1]), striped)
    front = h * 0.93 - 7 * np.abs(c.fractal(0.9, (9, 1)))
    c.paint(front - c.y, dry * 0.8, 0.65)


def animal(c, foot, x, r, way, striped):
    """A four-legged body of joined bars, with a coat pattern as its texture."""

    def bar(a, b, ra, rb):
        at = [(foot + p * r, x + way * q * r) for p, q in (a, b)]
        return c.capsule(at[0], at[1], ra * r, rb * r)

    low = c.random() < 0.35  # grazing
    head = (-0.35, 1.75) if low else (-2.15, 1.55)
    nose = (-0.1, 1.95) if low else (-1.9, 2.0)
    parts = [bar((-1.25, -0.8), (-1.2, 0.75), 0.47, 0.45), bar((-1.35, 0.8), head, 0.34, 0.2)]
    parts += [bar(head, nose, 0.22, 0.13), bar((-1.3, -1.15), (-0.6, -1.35), 0.07, 0.04)]
    parts += [bar((head[0] - 0.1, head[1] - 0.1), (head[0] - 0.42, head[1] - 0.12), 0.08, 0.05)]
    for q in (-0.95, -0.65, 0.6, 0.9):
        parts += [bar((-0.9, q), (0.0, q + 0.12 * c.normal()), 0.17, 0.085)]
    d = union(parts, 0.05 * r)
    coat, dark = ("zebra", "zebra stripe") if striped else ("deer", "deer spot")
    light = shading(d, 0.45 * r) * (1 + 0.04 * c.fractal(1))
    c.shadow(c.ellipse(foot, x + 0.6 * r, 0.16 * r, 1.6 * r), 0, 0, 3, 0.5)
    body = c.paint(d, coat, 0.04, light)
    warp = c.fractal(3.0)
    wave = np.sin(c.x * 8.5 / r + 1.6 * warp) if striped else warp - 0.5
    pattern = np.maximum(d, 2.5 - wave * r * 0.12 - 2.5 if striped else -wave * r * 0.3)
    c.paint(pattern, dark, 0.93 if striped else 0.62, light, parent=body)


def reef(c):
    """Fish over coral in water that swallows what is far."""
    h, w = c.shape
    deep = rgb("deep water")
    beams = ndi.gaussian_filter1d(c.fractal(2.5, (12, 1)), 3, axis=1)
    c.rgb[:] = lit(mix("shallow water", deep, unit(c.y / h)), 1 + 0.07 * beams)
    for near, rise in ((0.35, 0.36), (0.9, 0.16)):
        line = h * (1 - rise) - 16 * c.ridge(3)
        bumps = c.fractal(1.8)
        rock = lit("reef", 0.8 + 0.16 * bumps + 0.1 * c.fractal(0.7))
        c.paint(line[None] - c.y, mix(deep * 1.5, rock, near), 0.3 - 0.28 * near)
        for _ in range(5):
            x, size = c.uniform(0, w), c.uniform(30, 62) * (0.5 + near / 2)
            coral(c, h * (1 - rise) + 14, x, size, near)
        for _ in range(6):
            size = c.uniform(16, 26) + 20 * near
            fish(c, c.uniform(0.1, 0.72) * h, c.uniform(0.05, 0.95) * w, size, near)
        if near < 0.5:
            c.blur(1.6)


def coral(c, foot, x, size, near):
    """A bush of rounded branches."""
    parts = []
    for angle in np.linspace(-1.1, 1.1, c.integers(4, 8)) + c.normal(size=1) * 0.1:
        mid = (foot - 0.55 * size * np.cos(angle), x + 0.55 * size * np.sin(angle))
        end = (mid[0] - 0.5 * size * np.cos(angle * 0.6), mid[1] + 0.5 * size * np.sin(angle * 0.6))
        parts += [c.capsule((foot, x), mid, 5, 4.5), c.capsule(mid, end, 4.5, 3)]
    d = union(parts, 1.5) + 0.8 * c.fractal(1.2)
    tone = c.choice(["red coral", "yellow coral", "purple coral", "pale coral"])
    light = shading(d, 5, c.fractal(1.0) * 0.6)
    c.paint(d, mix("far coral", lit(tone, light), near), 0.38 - 0.3 * near)


def fish(c, cy, cx, r, near):
    """A body, fins and tail; bars across it and an eye."""
    way, tilt = c.choice([-1, 1]), c.normal() * 0.15
    v = (c.y - cy) * np.cos(tilt) + (c.x - cx) * np.sin(tilt)
    u = ((c.x - cx) * np.cos(tilt) - (c.y - cy) * np.sin(tilt)) * way
    body = ellipse(v, u, 0, 0, r * c.uniform(0.42, 0.6), r)
    tail = np.maximum(np.abs(v) + 0.9 * (u + 0.7 * r), -u - 1.45 * r)
    fin = np.maximum(ellipse(v, u, -0.35 * r, -0.1 * r, 0.45 * r, 0.5 * r), u - 0.35 * r)
    d = union([body, tail, fin], 1.5)
    hues = ["yellow fish", "orange fish", "silver fish", "blue fish"]
    one, two = c.choice(hues, 2, replace=False)
    light = shading(d, 0.5 * r) * (1 + 0.05 * np.sin(u * 2.1) * np.sin(v * 2.1))
    haze = "far fish"
    whole = c.paint(d, mix(haze, lit(one, light), near), 0.3 - 0.27 * near)
    bars = np.maximum(body + 0.5, (0.35 - np.sin(u * 5.2 / r + 0.6)) * r * 0.3)
    c.paint(bars, mix(haze, lit(rgb(two) * 0.8, light), near), 0.95 - 0.3 * near, parent=whole)
    eye = near * cover(ellipse(v, u, -0.1 * r, 0.7 * r, 2.2, 2.2))
    c.rgb = mix_mask(c.rgb, "eye", eye)


def meadow(c):
    """Flowers on stalks in front of others out of focus."""
    h, w = c.shape
    c.rgb[:] = mix("meadow shade", "meadow light", 1 / (1 + np.exp(-1.2 * c.fractal(2.8))))
    for sigma, count, low, high, salience in (
        (6.0, 12, 22, 34, 1.5),
        (2.2, 5, 26, 40, 0.5),
        (0.0, 5, 42, 62, 0.04),
    ):
        for _ in range(count):
            y, x = c.uniform(0.08, 0.72) * h, c.uniform(0.08, 0.92) * w
            flower(c, y, x, c.uniform(low, high), salience, not sigma)
        if sigma:
            c.blur(sigma)


def flower(c, cy, cx, r, salience, crisp):
    """Two rings of petals around a grainy disc, on a stalk."""
    stalk = c.capsule((cy, cx), (c.shape[0] + 9, cx + c.normal() * 25), 2.4, 3.4)
    c.paint(stalk, "stem", salience + 0.2, shading(stalk, 3))
    tone = c.choice(["daisy", "buttercup", "mallow", "scabious"])
    squash, turn, petals = c.uniform(0.65, 1), c.uniform(0, 6), c.integers(8, 14)
    rho = np.hypot((c.y - cy) / squash, c.x - cx)
    theta = np.arctan2((c.y - cy) / squash, c.x - cx) + turn
    first = 0
    for ring, (reach, phase) in enumerate(((1.0, 0.0), (0.78, 0.5))):
        lobe = np.abs(np.cos((theta * petals / 2) + phase * np.pi)) ** 0.45
        d = rho - r * reach * (0.45 + 0.55 * lobe)
        line = 0.05 * np.cos(theta * petals * 3) - 0.28 * np.exp(-((lobe / 0.45) ** 2))
        light = 0.72 + 0.3 * rho / r + line - 0.12 * (1 - ring) + 0.1 * (cx - c.x) / r
        if crisp:
            c.shadow(d, 4, 3, 3, 0.45)
        first = c.paint(d, unit(lit(tone, light)), salience + 0.66 * ring)
    disc = c.ellipse(cy, cx, 0.27 * r * squash, 0.27 * r)
    grain = shading(disc, 0.2 * r, 1.2 * c.fractal(0.4))
    c.paint(disc, "pollen", salience + 0.22, grain, parent=first)


SCENES: tuple[Callable[[Canvas], None], ...] = (
    lake, stones, fruit, leaves, herd, town, reef, meadow,
)  # fmt: skip
