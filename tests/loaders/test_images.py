"""Pictures as one gray array or as colours: modes, pages, sizes, what is printed meanwhile."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from bsdsbench import io as bounded
from bsdsbench.errors import FileFormatError
from bsdsbench.loaders.formats.photos import read_photo
from bsdsbench.loaders.formats.pictures import Palette, read_arrays
from tests.helpers.runs import refused

GRAY = (np.arange(3 * 5).reshape(3, 5) * 17).astype(np.uint8)
RGB = np.dstack([GRAY] * 3)
PAGES = [Image.fromarray(GRAY), Image.fromarray(255 - GRAY)]


def read_image(path, palette=Palette.COLOURS):
    return read_arrays(path, palette)[""]


def save(path, array, mode=None, **more):
    picture = Image.fromarray(array)
    (picture.convert(mode) if mode else picture).save(path, **more)
    return path


@pytest.mark.parametrize(
    ("suffix", "array", "mode", "dtype"),
    [
        *((".png", GRAY, mode, "u1") for mode in (None, "RGB", "RGBA", "LA")),
        (".bmp", np.tile(GRAY, (1, 32)), None, "u1"),  # 160 columns: no 16 bits
        *((suffix, GRAY.astype(np.uint16) * 257, None, "u2") for suffix in (".png", ".tif")),
        (".tif", GRAY.astype(np.int32) - 99, None, "i4"),
        (".tif", GRAY / np.float32(255), None, "f4"),
        (".png", GRAY > 99, None, "u1"),
    ],
)
def test_gray_in_the_depth_of_its_file(tmp_path, suffix, array, mode, dtype):
    found = read_image(save(tmp_path / f"a{suffix}", array, mode))
    assert (found.dtype, found.flags.c_contiguous) == (np.dtype(dtype), True)
    expected = array * 255 if array.dtype == bool else array
    assert found.tolist() == expected.tolist()
    assert (read_image(tmp_path / f"a{suffix}", Palette.INDICES) == array).all()


def test_a_palette_s_colours_are_the_default(tmp_path):
    picture = Image.fromarray(GRAY // 85).convert("P")
    picture.putpalette([9, 9, 9, 100, 100, 100, 200, 200, 200])
    picture.putdata((GRAY // 85).ravel().tolist())
    picture.save(tmp_path / "a.png")
    picture.save(tmp_path / "b.png", transparency=1)
    assert read_image(tmp_path / "a.png").tolist() == np.array([9, 100, 200])[GRAY // 85].tolist()
    refused(r"b\.png: has transparent", read_image, tmp_path / "b.png", error=FileFormatError)
    for name in ("a.png", "b.png"):
        for palette in (Palette.INDICES, Palette.MASK):
            assert read_image(tmp_path / name, palette).tolist() == (GRAY // 85).tolist()


@pytest.mark.parametrize("suffix", [".png", ".gif"])
@pytest.mark.parametrize(("black", "white"), [(0, 1), (1, 0), (0, 5), (7, 3)])
def test_a_black_and_white_palette_is_a_mask_by_its_colours(tmp_path, suffix, black, white):
    is_object = GRAY > 99
    picture = Image.fromarray(np.where(is_object, white, black).astype(np.uint8)).convert("P")
    colours = np.full((256, 3), 9, np.uint8)
    colours[[black, white]] = [[0] * 3, [255] * 3]
    picture.putpalette(colours.ravel().tolist())
    picture.putdata(np.where(is_object, white, black).ravel().tolist())
    picture.save(tmp_path / f"a{suffix}", optimize=False)
    assert read_image(tmp_path / f"a{suffix}", Palette.MASK).tolist() == (is_object * 255).tolist()


def test_a_palette_of_many_grays_is_that_of_a_gray_mask(tmp_path):
    """As Pillow saves gray in a GIF: its indices are not in proportion to the grays."""
    gray = (np.arange(60) ** 2 // 16).astype(np.uint8).reshape(4, 15)
    path = save(tmp_path / "a.gif", gray)
    assert (read_image(path, Palette.INDICES) != gray).any()
    assert read_image(path, Palette.MASK).tolist() == gray.tolist()


@pytest.mark.parametrize(
    ("name", "options", "lossy"),
    [
        ("a.jpg", {}, "JPEG"),
        ("a.tif", {"compression": "jpeg"}, "JPEG"),
        ("a.webp", {"quality": 80}, "lossy WebP"),
        ("a.webp", {"lossless": True}, ""),
        ("a.tif", {"compression": "tiff_lzw"}, ""),
    ],
)
def test_lossy_files_hold_no_labels(tmp_path, name, options, lossy):
    path = save(tmp_path / name, GRAY, **options)
    assert read_image(path, Palette.MASK).shape == GRAY.shape
    if lossy:
        refused(f"is a {lossy}, which alters labels", read_image, path, Palette.INDICES)
    else:
        assert read_image(path, Palette.INDICES).tolist() == GRAY.tolist()


def test_bools_that_tifffile_wrote_are_refused(tmp_path):
    """By the standard True is black there, and True again for tifffile itself."""
    for program, is_read in (("scanner", True), ("tifffile.py", False)):
        path = save(tmp_path / "a.tif", GRAY > 99, tiffinfo={262: 0, 305: program})
        if is_read:
            assert set(np.unique(read_image(path))) == {0, 255}
        else:
            refused(r"a\.tif: has 1 bit, whose True .*expected 8 bits", read_image, path)


@pytest.mark.parametrize(("mode", "bands"), [("LA", 2), ("RGBA", 4)])
def test_bands_that_pillow_leaves_out_are_refused(tmp_path, mode, bands):
    """As of background and object: the tag ExtraSamples says 2 for alpha, and 0 for no meaning."""
    path = save(tmp_path / "a.tif", GRAY, mode)
    tag = struct.pack("<HHI", 338, 3, 1)
    path.write_bytes(path.read_bytes().replace(tag + b"\2", tag + b"\0"))
    refused(rf"a\.tif: has {bands} bands, expected one \(save one band\)", read_image, path)


def test_tiffs_of_other_types_are_not_called_damaged(tmp_path):
    """Of 64 bits, as numpy's floats and integers are."""
    save(tmp_path / "a.tif", GRAY / np.float32(255))
    data = (tmp_path / "a.tif").read_bytes()
    bits = struct.pack("<HHII", 258, 3, 1, 32)
    assert bits in data
    (tmp_path / "a.tif").write_bytes(data.replace(bits, struct.pack("<HHII", 258, 3, 1, 64)))
    refused(r"a\.tif: is a TIFF of a type that is not read \(64", read_image, tmp_path / "a.tif")


@pytest.mark.parametrize(("bits", "row"), [(2, 0b00011011), (4, 0x0123)])
def test_gray_of_few_bits_holds_no_labels(tmp_path, bits, row):
    """Masks and soft maps are stretched to 0 .. 255; labels could be meant so or as 0, 1, 2, 3."""
    path = tmp_path / "a.png"
    path.write_bytes(png_by_hand(b"\0" + row.to_bytes(bits // 2), 4, 1, bits))
    step = 255 // (2**bits - 1)
    assert read_image(path).tolist() == [[0, step, 2 * step, 3 * step]]
    words = rf"has gray of {bits} bits, whose labels may be 0, 1 .. or 0, {step} .., expected 8"
    refused(words, read_image, path, Palette.INDICES)


@pytest.mark.parametrize(
    ("mode", "channel", "words"),
    [(mode, k, "colour") for mode in ("RGB", "RGBA") for k in range(3)]
    + [("RGBA", 3, "transparent"), ("LA", 1, "transparent")],
)
def test_one_other_value_is_no_gray_picture(tmp_path, mode, channel, words):
    values = np.array(Image.fromarray(GRAY).convert(mode))
    values[2, 4, channel] ^= 1
    path = save(tmp_path / "a.png", values)
    refused(rf"a\.png: .*{words}", read_image, path, error=FileFormatError)
    if words == "colour":
        advice = (
            "save one channel or, of a colour map, classes or objects, a number for each colour"
        )
        refused(advice, read_image, path, Palette.MASK)
    if mode == "RGB":
        assert read_photo(path).tolist() == values.tolist()


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "two pages"])
def test_colours_of_whatever_kind(tmp_path, mode):
    path = tmp_path / "a.tif"
    if mode == "two pages":
        PAGES[0].save(path, save_all=True, append_images=PAGES[1:])
    else:
        save(path, GRAY, mode)
    found = read_photo(path)
    assert (found.dtype, found.tolist()) == (np.uint8, RGB.tolist())


def deep_colour():
    """A PNG of three channels of 16 bits, which Pillow would halve."""
    return png_by_hand(b"".join(b"\0" + bytes(range(12)) for _ in range(2)), 2, 2, 16, 2)


def png_by_hand(rows, width, height, bits, colours=0):
    """A PNG of rows that begin with a zero byte: gray, or RGB if `colours` is 2."""
    header = struct.pack(">IIBBBBB", width, height, bits, colours, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows))]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(b)) + n + b + struct.pack(">I", zlib.crc32(n + b))
        for n, b in [*parts, (b"IEND", b"")]
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [("a.tif", "2 pages"), ("a.gif", "2 pages"), ("a.webp", "2 pages"), ("cmyk.tif", "CMYK"),
     ("deep.png", "16-bit colour"), ("tga.png", "not a picture .*WEBP$")],
)  # fmt: skip
def test_what_is_no_gray_picture(tmp_path, name, words):
    path = tmp_path / name
    if name == "deep.png":
        path.write_bytes(deep_colour())
    elif name == "cmyk.tif":
        assert read_photo(save(path, RGB, "CMYK")).shape == (3, 5, 3)
    elif name == "tga.png":
        save(path, GRAY, format="TGA")
    else:
        PAGES[0].save(path, save_all=True, append_images=PAGES[1:], lossless=True)
    refused(rf"{name}: .*{words}", read_image, path, error=FileFormatError)


def test_smaller_copies_in_a_tiff_are_no_pages(tmp_path):
    """As geographic programs write them: the tag NewSubfileType marks an overview with 1."""
    overview = Image.fromarray(GRAY[::2, ::2])
    overview.encoderinfo = {"tiffinfo": {254: 1}}
    path = tmp_path / "a.tif"
    Image.fromarray(GRAY).save(path, save_all=True, append_images=[overview])
    np.testing.assert_array_equal(read_image(path), GRAY)
    overview.encoderinfo = {"tiffinfo": {254: 2}}  # one page of several
    Image.fromarray(GRAY).save(path, save_all=True, append_images=[overview])
    refused(r"a\.tif: has 2 pages", read_image, path, error=FileFormatError)


def test_pages_of_a_png_are_refused_before_any_is_decoded(tmp_path):
    page = Image.fromarray(GRAY)
    page.save(tmp_path / "a.png", save_all=True, append_images=[page.rotate(180)])
    data = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(data[: len(data) // 2])
    refused(r"a\.png: has 2 pages", read_image, tmp_path / "a.png", error=FileFormatError)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tif", ".webp"])
@pytest.mark.parametrize("orientation", [0, 1, 3, 6])
def test_a_picture_that_viewers_turn(tmp_path, suffix, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = save(tmp_path / f"a{suffix}", GRAY, "RGB", exif=exif)
    for read in (read_image, read_photo):
        if orientation < 2:
            assert read(path).shape[:2] == (3, 5)
        else:
            words = f"has the Exif orientation {orientation}, .*exif_transpose"
            refused(words, read, path, error=FileFormatError)


@pytest.mark.parametrize(("suffix", "each"), [(".png", 1), (".webp", 8)])
@pytest.mark.parametrize("read", [read_image, read_photo])
def test_sizes_are_checked_before_a_pixel_is_decoded(tmp_path, monkeypatch, suffix, each, read):
    path = save(tmp_path / f"a{suffix}", GRAY, "RGB", lossless=True)
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", 15 * each)
    assert read(path).shape[:2] == (3, 5)
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", 15 * each - 1)
    refused("claims 3 x 5 values of", read, path)


@pytest.mark.parametrize(
    ("head", "top", "fits"),
    [("P5", 255, True), ("P5", 254, False), ("P5", 65535, True), ("P6", 254, False)],
)  # fmt: skip
def test_pnm_whose_values_would_be_stretched(tmp_path, head, top, fits):
    path, body = tmp_path / "a.pnm", bytes(2 * (1 + (top > 255)) * (3 if head == "P6" else 1))
    path.write_bytes(f"{head} 2 1 {top}\n".encode() + body)
    if fits:
        assert read_image(path).tolist() == [[0, 0]]
    else:
        refused(rf"a\.pnm: .*{top}", read_image, path, error=FileFormatError)
