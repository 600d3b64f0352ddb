"""Pictures as one gray array or as colours: modes, pages, sizes, what is printed meanwhile."""

import io

import numpy as np
import pytest
from PIL import Image

from bsdsbench.files import bounded
from bsdsbench.loaders.images import read_colour, read_image
from tests.helpers.runs import refused

GRAY = (np.arange(3 * 5).reshape(3, 5) * 17).astype(np.uint8)


def save(path, array, mode=None, **more):
    picture = Image.fromarray(array)
    (picture.convert(mode) if mode else picture).save(path, **more)
    return path


@pytest.mark.parametrize(
    ("suffix", "array", "mode", "dtype"),
    [
        (".png", GRAY, None, "u1"),
        (".png", GRAY, "RGB", "u1"),
        (".png", GRAY, "RGBA", "u1"),
        (".png", GRAY, "LA", "u1"),
        (".png", GRAY.astype(np.uint16) * 257, None, "u2"),
        (".tif", GRAY.astype(np.uint16) * 257, None, "u2"),
        (".tif", GRAY.astype(np.int32) - 99, None, "i4"),
        (".tif", GRAY / np.float32(255), None, "f4"),
        (".png", GRAY > 99, None, "u1"),
    ],
)
def test_gray_in_the_depth_of_its_file(tmp_path, suffix, array, mode, dtype):
    found = read_image(save(tmp_path / f"a{suffix}", array, mode))
    assert found.dtype == np.dtype(dtype)
    assert found.flags.c_contiguous
    expected = array * 255 if array.dtype == bool else array
    assert found.tolist() == expected.tolist()
    assert (read_image(tmp_path / f"a{suffix}", indices=True) == array).all()


def test_a_palette_s_colours_are_the_default(tmp_path):
    picture = Image.fromarray(GRAY // 85).convert("P")
    picture.putpalette([9, 9, 9, 100, 100, 100, 200, 200, 200])
    picture.putdata((GRAY // 85).ravel().tolist())
    picture.save(tmp_path / "a.png")
    colours = np.array([9, 100, 200])[GRAY // 85]
    assert read_image(tmp_path / "a.png").tolist() == colours.tolist()
    assert read_image(tmp_path / "a.png", indices=True).tolist() == (GRAY // 85).tolist()
    picture.save(tmp_path / "b.png", transparency=1)
    refused("has transparent pixels", read_image, tmp_path / "b.png")
    assert read_image(tmp_path / "b.png", indices=True).tolist() == (GRAY // 85).tolist()


@pytest.mark.parametrize("channel", [0, 1, 2])
def test_one_other_channel_is_colour(tmp_path, channel):
    rgb = np.dstack([GRAY] * 3)
    rgb[2, 4, channel] ^= 1
    words = r"a\.png: is a colour picture \(its RGB channels differ\), expected gray$"
    refused(words, read_image, save(tmp_path / "a.png", rgb))
    assert read_colour(tmp_path / "a.png").tolist() == rgb.tolist()


@pytest.mark.parametrize("mode", ["LA", "RGBA"])
def test_one_transparent_pixel_is_refused(tmp_path, mode):
    picture = Image.fromarray(GRAY).convert(mode)
    picture.putalpha(Image.fromarray(np.where(GRAY == 17, 254, 255).astype(np.uint8)))
    picture.save(tmp_path / "a.png")
    words = r"a\.png: has transparent pixels, expected an opaque gray picture$"
    refused(words, read_image, tmp_path / "a.png")


def test_colours_of_whatever_kind(tmp_path):
    expected = np.dstack([GRAY] * 3).tolist()
    for mode in ("L", "RGB", "RGBA"):
        found = read_colour(save(tmp_path / "a.png", GRAY, mode))
        assert found.dtype == np.uint8
        assert found.tolist() == expected
    pages = [Image.fromarray(GRAY), Image.fromarray(255 - GRAY)]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    assert read_colour(tmp_path / "a.tif").tolist() == expected
    for name in ("a.tif", "a.gif", "a.webp"):
        pages[0].save(tmp_path / name, save_all=True, append_images=pages[1:], lossless=True)
        refused("has 2 pages, expected one$", read_image, tmp_path / name)
    cmyk = save(tmp_path / "c.tif", np.dstack([GRAY] * 3), "CMYK")
    assert read_colour(cmyk).shape == (3, 5, 3)
    refused("has colour mode CMYK", read_image, cmyk)


@pytest.mark.parametrize(("suffix", "each"), [(".png", 1), (".webp", 8)])
def test_sizes_are_checked_before_a_pixel_is_decoded(tmp_path, monkeypatch, suffix, each):
    path = save(tmp_path / f"a{suffix}", GRAY, "RGB", lossless=True)
    for read in (read_image, read_colour):
        monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", 15 * each)
        assert read(path).shape[:2] == (3, 5)
        monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", 15 * each - 1)
        refused("claims 3 x 5 values of", read, path)


@pytest.mark.parametrize(
    ("head", "top", "fits"),
    [("P5", 255, True), ("P5", 254, False), ("P5", 256, False), ("P5", 65535, True),
     ("P5", 65534, False), ("P6", 255, True), ("P6", 254, False)],
)  # fmt: skip
def test_pnm_whose_values_would_be_stretched(tmp_path, head, top, fits):
    body = bytes(2 * (1 + (top > 255)) * (3 if head == "P6" else 1))
    (tmp_path / "a.pnm").write_bytes(f"{head} 2 1 {top}\n".encode() + body)
    if fits:
        assert read_image(tmp_path / "a.pnm").tolist() == [[0, 0]]
    else:
        words = f"has maxval {top}, expected 255, or 65535 and gray$"
        refused(words, read_image, tmp_path / "a.pnm")


def test_what_is_no_picture_of_these_formats(tmp_path):
    words = "is not a picture .*, expected PNG, TIFF, BMP, JPEG, GIF, PPM, WEBP$"
    refused(words, read_image, save(tmp_path / "a.png", GRAY, format="TGA"))


def test_a_png_without_its_end(tmp_path):
    stream = io.BytesIO()
    Image.fromarray(GRAY).save(stream, "PNG")
    whole = stream.getvalue()
    (tmp_path / "a.png").write_bytes(whole + bytes(56))
    assert read_image(tmp_path / "a.png").tolist() == GRAY.tolist()
    (tmp_path / "a.png").write_bytes(whole + bytes(57))
    words = r"ends too early \(truncated\?\), expected a whole PNG$"
    refused(words, read_image, tmp_path / "a.png")
