"""Finding files of known formats, reading them into arrays, and selecting the maps among these.

FORMATS names the decoder for each suffix: a function that converts the bytes of a file to one
array, or to a dict of arrays by name.
"""

from __future__ import annotations

import io
import logging
import math
import os
import re
import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from enum import Enum, auto
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeGuard
from unicodedata import normalize

import numpy as np

from bsdsbench import io as bounded
from bsdsbench.arguments import Bools, Floats, suggest_one_map
from bsdsbench.errors import DataError, FileFormatError, PairingError, Problem, Setting
from bsdsbench.images import Map, one_channel
from bsdsbench.io import FaultError, PathLike, ReadBytes, check_size, file_errors, read_bytes
from bsdsbench.text import join_names, show

if TYPE_CHECKING:
    from PIL import ImageFile

_PNM = (".pgm", ".ppm", ".pbm", ".pnm", ".pfm")
IMAGE_SUFFIXES = (".png", ".tif", ".tiff", ".bmp", ".jpg", ".jpeg", ".gif", ".webp", *_PNM)
# Suffix -> MODULE:FUNCTION of bsdsbench.loaders.formats, and the expected content, for errors
FORMATS = {
    **dict.fromkeys(IMAGE_SUFFIXES, ("pictures:_decode_image", "a whole picture")),
    ".npy": ("pictures:_decode_npy", "a numpy .npy file"),
    ".npz": ("pictures:unpack_npz", "a numpy .npz file"),
    ".mat": ("matlab:decode_mat", "a MATLAB file, version 5 to 7.3"),
    ".h5": ("hdf5:read_hdf5", "an HDF5 file"),
    ".hdf5": ("hdf5:read_hdf5", "an HDF5 file"),
    ".dpt": ("depth_files:decode_dpt", "a depth map .dpt"),
    ".seg": ("seg_files:decode_seg", "a BSDS300 .seg file"),
}
# Image formats (Pillow's names); they are recognised by content, whatever image suffix a file has
PICTURES = ("PNG", "TIFF", "BMP", "JPEG", "GIF", "PPM", "WEBP")
NUMBERS, TEXT = "biuf", "biufU"  # kinds of dtype
MAX_DEPTH = 8  # levels of nested cells and structs
MAX_MEMBERS = 10_000  # arrays in a .npz
# TIFF tags
_NEW_SUBFILE_TYPE = 254  # its lowest bit marks a smaller copy of another page
_PHOTOMETRIC_INTERPRETATION = 262  # 0: the value 0 is white
_SAMPLES_PER_PIXEL = 277
_SOFTWARE = 305  # the program that wrote the file
_FEW_GRAYS = 16  # a palette of more grays is that of a gray picture, not of labels
MOST_ANNOTATORS = 16  # a longer last axis is the width of the image, not the annotators
DEFLATE_RATIO = 1032  # the largest possible expansion of deflate-compressed data
# Without a handler, Python would print Pillow's log of damaged files; other handlers still get it
logging.getLogger("PIL").addHandler(logging.NullHandler())


class Palette(Enum):
    """How a palette image (a table of colours, and an index into it at each pixel) is read."""

    COLOURS = auto()  # the colours, which must be gray
    INDICES = auto()  # the indices, such as class labels
    MASK = auto()  # the colours if those in use are black and white, whichever of them is index 0,
    # or more than _FEW_GRAYS grays, which make a gray picture; otherwise the indices


def id_of(path: PathLike) -> str:
    """Return the image id of a file: its name in printable form, without a suffix of FORMATS.

    The name is normalised to NFC, because some file systems store letters and accents separately.
    """
    name = normalize("NFC", os.path.basename(path))
    stem, dot, suffix = name.rpartition(".")
    has_known_suffix = stem and f"{dot}{suffix}".lower() in FORMATS  # ".png" is a name
    return show(stem if has_known_suffix else name)


def find_files(folder: PathLike, suffixes: Collection[str]) -> list[Path]:
    """List the files at any depth below `folder` that have one of the suffixes, in natural order.

    `suffixes` are in lower case, such as ".png", but also match upper case. Hidden files are
    ignored. Links are followed, except to a folder that they lie in. Returns [] if the folder does
    not exist, and raises PairingError if a folder cannot be read.
    """
    paths: list[Path] = []
    # Folders to list, by their paths below `folder`, with the identities of the folders they lie in
    pending: list[tuple[str, tuple[object, ...]]] = [("", ())]
    while pending:
        inner, parents = pending.pop()
        place = Path(folder, inner)
        try:
            status = place.stat()
            with os.scandir(place) as listing:
                entries = list(listing)
        except OSError as error:
            if not inner and not os.path.isdir(place):
                return []
            has = f"cannot be read ({error.strerror})"
            raise PairingError(Problem(show(place), has, "a folder that can")) from None
        identity = status.st_dev, status.st_ino
        if identity in parents:  # a link led back to a folder that it lies in
            continue
        for entry in entries:
            if entry.name[0] == ".":  # hidden
                continue
            name = os.path.join(inner, entry.name)
            if os.path.splitext(name)[1].lower() in suffixes:
                paths.append(place / entry.name)  # even a folder "a.png", so that an error names it
            # Unlike is_dir, isdir does not raise for a link that leads to itself
            is_folder = os.path.isdir(entry) if entry.is_symlink() else entry.is_dir()
            if is_folder:
                pending.append((name, (*parents, identity)))
    return sorted(paths, key=natural_sort_key)


def natural_sort_key(name: PathLike) -> str:
    """Return a key that sorts names by the values of their numbers: ID_2 comes before ID_10."""
    parts = re.split(r"(\d+)", os.fspath(name))  # texts, and numbers between them
    for k in range(1, len(parts), 2):
        parts[k] = parts[k].zfill(20)
    return "".join(parts)


def read_arrays(
    path: PathLike,
    palette: Palette = Palette.COLOURS,
    what: str = "arrays",
    read: ReadBytes = read_bytes,
) -> dict[str, object]:
    """Read a file of any format in FORMATS into a dict of its variables by name.

    The suffix decides the format. A single unnamed array, as in images and .npy files, gets the
    name "". Images must be gray, and become (H, W) arrays. MATLAB cells become lists, and MATLAB
    structs become dicts.

    - palette: how palette images are read
    - what: the expected content, for error messages
    - read: a function that returns the bytes of a file

    Raises FileFormatError if the suffix is unknown, or if the file cannot be read or decoded.
    """
    suffix = os.path.splitext(path)[1].lower()  # ".png"
    if suffix not in FORMATS:
        expected = f"expected {what} in one of {', '.join(FORMATS)}"
        raise FileFormatError(f"{show(path)}: suffix {suffix or 'missing'}, {expected}")
    decoder, expected_content = FORMATS[suffix]
    module, function = decoder.split(":")  # imported only now, because formats need libraries
    decode = getattr(import_module(f"bsdsbench.loaders.formats.{module}"), function)
    data = read(path)
    with file_errors(path, expected_content):
        content = decode(data, palette) if suffix in IMAGE_SUFFIXES else decode(data)
    return content if isinstance(content, dict) else {"": content}


def _decode_npy(data: bytes) -> Map:
    """Decode the bytes of a .npy file to an array."""
    return _read_npy_array(io.BytesIO(data), len(data), is_image=True)


def unpack_npz(data: bytes, limit: int | None = None) -> dict[str, Map]:
    """Decode the bytes of a .npz file to a dict of its arrays by name.

    Other members of the archive are ignored, and so are arrays without numbers, such as text, if
    there are also numbers. A user's file has limits, which are checked before anything is decoded:
    that of images for each array (`check_size`), and MAX_DECODED_BYTES for all. For files of
    bsdsbench itself, `limit` is the total of decoded bytes, and text is read too.

    Raises FaultError if a limit is exceeded, or if an array is damaged or of another type, and
    zipfile.BadZipFile if `data` is not a zip archive.
    """
    max_bytes = bounded.MAX_DECODED_BYTES if limit is None else limit
    arrays = {}
    unread = None  # the error of an array of another type
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        if len(members) > MAX_MEMBERS:
            raise FaultError(f"holds {len(members)} arrays, expected at most {MAX_MEMBERS}")
        if sum(member.file_size for member in members) > max_bytes:
            raise FaultError(f"decodes to more than {max_bytes} bytes, expected less")
        for member in members:
            size = member.file_size
            # No data expand so much; + 1, as an empty member may have no compressed bytes
            if size > DEFLATE_RATIO * (member.compress_size + 1):
                raise FaultError("claims more than its bytes can hold, expected a sound .npz")
            name = member.filename.removesuffix(".npy")
            with archive.open(member) as file:
                try:
                    array = _read_npy_array(file, size, is_image=limit is None)
                except _OtherTypeError as error:
                    unread = unread or FaultError(f"{show(name)} {error}")
                else:
                    arrays[name] = array
    if unread and not arrays:
        raise unread
    return arrays


class _OtherTypeError(FaultError):
    """An array does not hold numbers (or text, where that is accepted)."""


def _read_npy_array(file: IO[bytes], size: int, is_image: bool) -> Map:
    """Read the array in an open .npy file of `size` bytes, and return it in native byte order.

    The header is checked before memory is allocated. If `is_image` is True, the array must hold
    numbers, and its shape pass `check_size`; otherwise numbers or text. Raises _OtherTypeError for
    other types, and FaultError for damaged data.
    """
    npy = np.lib.format
    # Version of the format -> function that reads the header. A file of version (3, 0), which only
    # arrays with named fields need, is refused below by the KeyError
    header_readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        version = npy.read_magic(file)
        shape, _, dtype = header_readers[version](file)
    except Exception:  # numpy, and the literal's parser, raise several kinds
        raise FaultError("is no .npy file of numbers (a pickle, or damaged?)") from None
    if dtype.kind not in (NUMBERS if is_image else TEXT) or not dtype.itemsize:
        what = "Python objects, which are never loaded" if dtype.hasobject else f"{dtype.str!r}"
        raise _OtherTypeError(f"holds {show(what)}, expected numbers")
    if is_image:
        check_size(shape, dtype.itemsize)
    n_expected = math.prod(shape) * dtype.itemsize
    n_present = size - file.tell()
    if n_expected != n_present:
        raise FaultError(f"{n_present} bytes for {shape} {dtype}, expected {n_expected}")
    file.seek(0)
    array = npy.read_array(file, allow_pickle=False)
    if dtype.kind == "b":  # any byte except 0 is True
        return np.asarray(array.view(np.uint8) != 0)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _decode_image(data: bytes, palette: Palette) -> Map:
    """Decode the bytes of an image file to a gray (H, W) array.

    - 1 bit: uint8 with 0 and 255 or, unless `palette` is Palette.COLOURS, with 0 and 1
    - 8 and 16 bits: uint8 and uint16; TIFF and PFM of 32 bits: int32 or float32
    - RGB, and images with alpha: the gray channel as uint8
    - an index into a palette at each pixel: uint8, the gray colours or the indices (see `Palette`)

    Raises FaultError if any pixel is coloured or not opaque, or if labels may have changed.
    """
    header = open_image(data)
    _check_mode(header)
    if palette is Palette.INDICES:
        _refuse_changed_labels(data, header)
    mode = header.mode
    # The mode to decode to. "P" gives the indices into a palette, "I" integers of 32 bits, "RGB"
    # colours, and None the stored mode
    target = mode if mode in ("P", "I") else None
    if mode == "P" and palette is Palette.COLOURS:
        target = "RGBA" if "transparency" in header.info else "RGB"
    array = decode_pixels(data, header, target)
    if mode == "P" and palette is Palette.MASK:
        colours = np.array(header.getpalette("RGB"), np.uint8).reshape(-1, 3)  # of each index
        used = colours[np.unique(array)]
        are_gray = (used == used[:, :1]).all()
        is_black_and_white = np.isin(used, (0, 255)).all()
        if are_gray and (is_black_and_white or len(used) > _FEW_GRAYS):
            return colours[:, 0][array]  # the gray colour of each pixel
    if array.ndim == 3:
        return _merge_channels(array, mode)
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255 if palette is Palette.COLOURS else 1)
    # Gray of 16 bits has the mode "I;16" or, in a PNG or PNM by some versions of Pillow, "I"
    if "16" in mode or (mode == "I" and header.format in ("PNG", "PPM")):
        return array.astype(np.uint16)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _refuse_changed_labels(data: bytes, header: ImageFile.ImageFile) -> None:
    """Raise FaultError if an image, opened as `header`, may have other labels than were saved."""
    is_lossy_webp = header.format == "WEBP" and b"VP8L" not in data  # the mark of lossless WebP
    # A TIFF may be compressed as JPEG
    is_jpeg = header.format == "JPEG" or header.info.get("compression") == "jpeg"
    if is_lossy_webp or is_jpeg:
        lossy = "lossy WebP" if is_lossy_webp else "JPEG"
        raise FaultError(f"is a {lossy}, which alters labels, expected a lossless format, as PNG")
    for bits in (2, 4):
        if f"'L;{bits}" in str(header.tile[:1]):  # the stored mode is gray of 2 or 4 bits
            step = 255 // (2**bits - 1)  # Pillow stretches it to 8 bits: label 1 becomes 85 or 17
            has = f"has gray of {bits} bits, whose labels may be 0, 1 .. or 0, {step} .."
            raise FaultError(f"{has}, expected 8 or 16 bits")


def _merge_channels(array: Map, mode: str) -> Map:
    """Convert an image (H, W, C) of opaque gray, with equal channels, to (H, W).

    The channels are gray or RGB, and perhaps alpha. Raises FaultError if a pixel is coloured or not
    opaque. `mode` is the Pillow mode in which the image is stored.
    """
    n_channels = array.shape[2]
    if n_channels in (2, 4) and (array[:, :, -1] != 255).any():  # alpha, after gray or RGB
        fix = "save one channel, such as the alpha channel of an object that was cut out"
        raise FaultError("has transparent pixels, expected an opaque gray picture", fix=fix)
    if n_channels > 2 and (array[:, :, :3] != array[:, :, :1]).any():
        fix = "save one channel or, of a colour map, classes or objects, a number for each colour"
        if mode == "P":  # its palette was read as colours
            as_labels = "--set gt_kind=labels (--pred-kind labels) if its indices are regions"
            fix = f"save gray; or {as_labels}"
        raise FaultError("is a colour picture (its RGB channels differ), expected gray", fix=fix)
    return np.ascontiguousarray(array[:, :, 0])


def _check_mode(header: ImageFile.ImageFile) -> None:
    """Raise FaultError if Pillow could not decode the exact gray values of an image.

    This rejects several pages (other than smaller copies of the first in a TIFF file), bands beside
    gray, colours and alpha, PNM files with a maxval other than 255 or 65535, 16-bit colour, the
    modes CMYK, YCbCr and LAB, and bool arrays that tifffile wrote as 1 bit.
    """
    mode = header.mode
    n_pages = getattr(header, "n_frames", 1)
    for page in range(1, n_pages):
        if header.format == "TIFF":
            header.seek(page)  # `tag_v2` is then that of this page
        if not getattr(header, "tag_v2", {}).get(_NEW_SUBFILE_TYPE, 0) & 1:
            raise FaultError(f"has {n_pages} pages, expected one")
    if n_pages > 1:
        header.seek(0)
    # Pillow's plan for the blocks of pixels: (decoder, box, offset, arguments of the decoder)
    for tile in header.tile:
        decoder, arguments = tile[0], tile[3]  # the stored mode, or a tuple that begins with it
        stored_mode = str(arguments).partition(",")[0]  # "RGB;16B", or "('RGB;16B'" of the tuple
        if decoder.startswith("ppm") and isinstance(arguments, tuple):  # (stored mode, maxval)
            # Pillow opens 16-bit gray as mode "I", and rescales pixels for any other maxval
            maxval = int(arguments[1])
            if maxval != (65535 if mode == "I" else 255):
                raise FaultError(f"has maxval {maxval}, expected 255, or 65535 and gray")
        # Gray of 16 bits is opened as mode "I" or "I;16"; colour would be reduced to 8 bits
        elif "16" in stored_mode and not mode.startswith("I"):
            raise FaultError("is 16-bit colour, expected gray: save one channel")
    if mode in ("CMYK", "YCbCr", "LAB"):
        raise FaultError(f"has colour mode {mode}, expected gray")
    tags = getattr(header, "tag_v2", {})  # of a TIFF
    n_bands = tags.get(_SAMPLES_PER_PIXEL, 1)
    if n_bands > len(header.getbands()):  # Pillow would leave out those that have no meaning
        raise FaultError(f"has {n_bands} bands, expected one", fix="save one band")
    is_0_white = tags.get(_PHOTOMETRIC_INTERPRETATION) == 0
    # tifffile stores True as 1, which is then black; other programs read black as 0
    if mode == "1" and is_0_white and "tifffile" in str(tags.get(_SOFTWARE)):
        fix = "save mask.astype(numpy.uint8) * 255"
        raise FaultError("has 1 bit, whose True tifffile saves as black, expected 8 bits", fix=fix)


def refuse_jpeg_noise(mask: Map, white: float, cut: float, what: str) -> None:
    """Raise DataError if a `cut` below 1/255 would turn noise of JPEG in a mask (H, W) into object.

    Pixels at or above the cut, a fraction of `white`, are object. Presets of cracks take every
    value above 0. JPEG leaves faint gray around objects, and some of it more than three pixels
    away. A mask that was resized or blurred has gray up to white, and hardly any so far away.
    `what` names the mask.
    """
    if cut >= 1 / 255:
        return
    is_object = mask >= white / 2
    is_faint = (mask > 0) & (mask < white / 8)
    n_dark = np.count_nonzero((mask > 0) & (mask < white / 2))
    n_object, n_faint = np.count_nonzero(is_object), np.count_nonzero(is_faint)
    is_mostly_faint = n_faint >= 0.85 * n_dark  # 86 % and more in JPEG of quality 50 to 95
    if n_object and is_mostly_faint and n_faint >= 0.02 * n_object:  # fewer may be drawn
        from scipy.ndimage import maximum_filter

        is_far = ~maximum_filter(is_object, 7)  # no object pixel in the 7 x 7 pixels around
        if np.count_nonzero(is_faint & is_far) < 0.02 * n_faint:
            return
        has = f"{what}: most gray is almost black, and object by gt_threshold = {cut:g}"
        noise = Setting("gt_threshold", 0.5, "if it is noise of JPEG")
        # Just above 1/255 = 0.0039, from which on this test is left out
        fixes = noise, Setting("gt_threshold", 0.004, "if it is object")
        raise DataError(f"{has}, expected no noise", fix=fixes)


def open_image(data: bytes) -> ImageFile.ImageFile:
    """Open an image in one of the formats PICTURES, reading only its header.

    Raises FaultError if it is not such an image, is too large, or has Exif data that rotate it.
    """
    from PIL import ExifTags, Image, UnidentifiedImageError

    try:
        header = Image.open(io.BytesIO(data), formats=PICTURES)
    except UnidentifiedImageError:
        if data[:4] in (b"II*\0", b"MM\0*"):
            has = "is a TIFF of a type that is not read (64 bits, floats of 16, or bands?)"
            raise FaultError(f"{has}, expected 8, 16 or 32 bits, or .npy") from None
        known = ", ".join(PICTURES)
        raise FaultError(f"is not a picture (damaged?), expected {known}") from None
    except Image.DecompressionBombError:
        raise FaultError("claims too many pixels, expected at most 100000000") from None
    # A WebP is decoded on two canvases of 4 bytes per pixel each
    bytes_per_pixel = 8 if header.format == "WEBP" else 1
    check_size((header.height, header.width), bytes_per_pixel)
    # Pillow would decode a whole PNG to search it for Exif data that follows the pixels
    may_have_exif = header.format != "PNG" or "exif" in header.info
    orientation = header.getexif().get(ExifTags.Base.Orientation, 1) if may_have_exif else 1
    if orientation not in (0, 1):  # 0: not stated; 1: upright; others: rotated or mirrored
        fault = f"has the Exif orientation {orientation}, so viewers rotate it, expected 1"
        raise FaultError(fault, fix="save what PIL.ImageOps.exif_transpose returns")
    return header


def decode_pixels(data: bytes, header: ImageFile.ImageFile, mode: str | None) -> Map:
    """Decode the first page of an image to an array (H, W) or, with colour or alpha, (H, W, C).

    - data: the bytes of the file
    - header: the image as `open_image` returns it
    - mode: the Pillow mode to convert to, such as "RGB"; None keeps the image's mode
    """
    if header.format != "PNG":
        import imageio.v3 as iio

        return iio.imread(data, plugin="pillow", index=0, mode=mode, writeable_output=False)
    # Pillow ignores the checksums of the chunks of a PNG. A chunk has the length of its content in
    # 4 bytes, its name in 4, the content and, in 4 bytes, the checksum of name and content
    start = 8  # after the signature
    while (name := data[start + 4 : start + 8]) != b"IEND":
        end = start + 8 + int.from_bytes(data[start : start + 4])
        if end + 4 > len(data):
            raise FaultError("ends too early (truncated?), expected a whole PNG")
        if zlib.crc32(data[start + 4 : end]) != int.from_bytes(data[end : end + 4]):
            raise FaultError(f"has a wrong checksum in its part {show(name)}, expected a whole PNG")
        start = end + 4
    # imageio would search for libraries of other formats, which takes longer than decoding
    return np.asarray(header.convert(mode) if mode else header)


def select_maps(variables: dict[str, object]) -> dict[str, object]:
    """Return the variables of a file that may be maps, as a dict from name to value.

    - If there is only one variable, it is returned whatever it holds.
    - If there is an array inst_map, as in HoVer-Net files, only that is returned.
    - Otherwise: all numeric arrays with more than two axes, or with two axes longer than 1, which
      leaves out scalars and vectors.
    """
    if len(variables) == 1:
        return variables
    arrays = {name: value for name, value in variables.items() if is_numeric(value)}
    if "inst_map" in arrays:
        return {"inst_map": arrays["inst_map"]}
    return {
        name: array
        for name, array in arrays.items()
        if array.ndim > 2 or (array.ndim == 2 and 1 not in array.shape)
    }


def is_numeric(value: object) -> TypeGuard[Map]:
    """Return True for a NumPy array of bools, integers or floats."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def to_plane(array: object, what: str) -> Map:
    """Return a numeric array as (H, W), without further axes of length 1; errors name `what`."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in NUMBERS:
        raise FaultError(f"{what} is not a numeric array, expected (H, W)")
    if array.ndim > 2:
        longer_axes = [length for length in array.shape if length != 1]
        array = array.reshape(longer_axes or [1, 1])
    if array.ndim != 2 or not array.size:
        fault = f"{what} of shape {array.shape}, expected two dimensions (H, W)"
        raise FaultError(fault, fix=suggest_one_map(array.shape))
    return array


def to_ucm2(array: object) -> Floats:
    """Check that a contour map has floats and odd sizes (2H+1, 2W+1), and return it as float64.

    Such a map has the strengths of contours between the pixels of an image (H, W), and in them.
    """
    array = to_plane(array, "ucm2")  # not made contiguous: often only a quarter of it is used
    rows, cols = array.shape
    if min(rows, cols) < 3 or rows % 2 == 0 or cols % 2 == 0:
        raise FaultError(f"ucm2 of shape {array.shape}, expected odd sizes (2H+1, 2W+1)")
    check_size(array.shape, 8)
    if array.dtype.kind != "f":  # rounding to 8 bits merges strengths, and shifts VOI by 0.2
        raise FaultError(
            f"ucm2 of {array.dtype}, expected floats in [0, 1]: strengths rounded to bytes give "
            "other regions (to score them anyway, save ucm2 / 255 as double)"
        )
    return array.astype(np.float64, copy=False)


def require_one_array(
    arrays: dict[str, object], path: Path, expected: str = "one array (H, W)"
) -> Map:
    """Return the only map among a file's variables, or raise DataError if there is not just one.

    (H, W, 1) becomes (H, W). `path` names the file in the error, and `expected` says what it needs.
    """
    maps = select_maps(arrays)
    array = next(iter(maps.values()), None)
    if len(maps) != 1 or not isinstance(array, np.ndarray):
        has = f"variables {join_names(sorted(arrays))}" if arrays else "no variable"
        raise DataError(f"{show(path)}: has {has}, expected {expected}")
    return one_channel(array)


def find_crack_mask(variables: Mapping[str, object]) -> Bools | None:
    """Return the bool mask (H, W) of the crack in a file of a crack set, or None for other files.

    In crack sets such as CFD, the variable groundTruth is a struct. Its Segmentation is 2 on the
    crack and 1 elsewhere, or 1 and 0; its Boundaries are the outline of the crack. In BSDS,
    groundTruth is a cell (here a list) of structs, one for each annotator.

    A cell of one struct with two labels may be either. It is a crack if all pixels of Boundaries
    belong to the crack. Otherwise they separate two regions, as in BSDS.
    """
    struct: Any = variables.get("groundTruth")
    is_cell = isinstance(struct, list)
    if is_cell and len(struct) == 1:
        struct = struct[0]
    labels = struct.get("Segmentation") if isinstance(struct, dict) else None
    if not isinstance(labels, np.ndarray) or not labels.size or labels.ndim != 2:
        return None
    low, high = labels.min(), labels.max()
    # The crack is 1 beside 0, and otherwise 2: if all labels are 1, there is no crack
    crack_label = 1 if low < 1 and high <= 1 else 2
    if low < 0 or high > 2 or not np.isin(labels, (low, crack_label)).all():
        return None
    mask = labels == crack_label
    if is_cell:  # of a crack set, or of BSDS
        outline = struct.get("Boundaries")
        has_outline = isinstance(outline, np.ndarray) and outline.shape == mask.shape
        if not has_outline or outline[~mask].any():
            return None
    return np.ascontiguousarray(mask)


def refuse_last_axis(array: Map, noun: str = "annotators", limit: float = math.inf) -> None:
    """Raise FaultError if an array looks like (H, W, A) or (H, A, W), not (A, H, W).

    A, the number of annotators or of what else the `noun` says, is then the shortest axis, which is
    above 1 and below `limit`; and the first has more than MOST_ANNOTATORS entries.
    """
    axis = 2 if array.shape[2] <= array.shape[1] else 1  # the shorter one of the two
    if array.shape[0] > MOST_ANNOTATORS and 1 < array.shape[axis] < min(array.shape[0], limit):
        wanted = np.moveaxis(array, axis, 0).shape
        fault = f"shape {array.shape}, expected the {noun} first, {wanted}"
        raise FaultError(fault, fix=f"np.moveaxis(array, {axis}, 0)")


def white_above(top: float) -> int:
    """Return the smallest of 1, 255 and 65535 that is at least `top`, or 0 if none is."""
    for white in (1, 255, 65535):
        if top <= white:
            return white
    return 0


def refuse_channels(maps: Sequence[Map], what: str, expected: str) -> None:
    """Raise DataError if (H, W) maps look like class channels instead of independent maps.

    One-hot or probability maps of n classes sum to white (1, 255 or 65535) at every pixel; if
    inverted, they sum to (n - 1) * white. Boundary maps of annotators do not. Maps are accepted if
    their shapes differ, or if all of them are constant or empty. The message begins with `what`,
    and says what was `expected`.
    """
    n = len(maps)
    if n < 2:
        return
    has_floats = False  # in any of the maps
    for channel in maps:
        if channel.shape != maps[0].shape or not channel.size:
            return
        has_floats |= channel.dtype.kind == "f"
    if not any(map(itemgetter((0, 0)), maps)):  # the sum at this pixel, 0, is not white
        return
    white: float = 1
    tolerance = 0.02  # by how much a sum may differ from white
    if not has_floats:
        white = white_above(max(map(np.max, maps)))  # 255 for 200
        tolerance = n if white > 1 else 0  # each of n maps of 8 or 16 bits is rounded
    # Independent maps often fail at the first pixel or row, which saves summing all pixels
    for region in (np.s_[:1, :1], np.s_[:1], np.s_[:]):
        total = np.zeros(maps[0][region].shape)
        for channel in maps:
            total += channel[region]
        is_white = (np.abs(total - white) <= tolerance).all()
        is_inverted = (np.abs(total - (n - 1) * white) <= tolerance).all()
        if not (is_white or is_inverted):
            return
    if any(channel.min() < channel.max() for channel in maps):  # not all are constant
        argmax = "of classes: numpy.argmax(maps, axis=0) is their label map"
        has = f"{n} maps that add up to one in every pixel"
        fixes = (argmax, "save the map of one class, (H, W)")
        raise DataError(f"{what}{has}, expected {expected}", fix=fixes)
