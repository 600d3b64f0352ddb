"""Download of public data sets by name, and the local folders of downloaded sets.

public_sets.toml lists the sets. A set with a `url` is downloaded into the user's cache, and is kept
only if its ground truth is recognised. For other sets, the file says how to get them.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import closing
from functools import cache, partial
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from attrs import field, frozen

from bsdsbench.errors import DataError
from bsdsbench.io import Progress, parse_toml
from bsdsbench.text import did_you_mean

# Limits after unpacking. The largest file is an image of 3 MB, the largest set (SBD) has 1.6 GB.
MAX_FILE, MAX_SET = 64 << 20, 4 << 30

# Exceptions of the libraries for damaged archives
DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError, ValueError)


@frozen
class PublicSet:
    """A publicly available data set: an entry of public_sets.toml."""

    name: str  # for `data get`
    title: str  # one line
    licence: str
    home: str  # its web page
    how: str = ""  # how to get the set from its web page, if it has no `url`
    url: str = ""  # the archive
    keep: str = ""  # a regular expression that matches the end of the path of each needed file
    sha256: str = ""  # the hash that the archive must have; "" if any is accepted
    protocol: str = "bsds500"  # name of the preset for reading the ground truth
    # Name of a split -> its ground-truth folder. Several names of one folder are its editions.
    splits: dict[str, str] = field(factory=dict)
    images: dict[str, str] = field(factory=dict)  # name of a split -> its folder of images
    counts: dict[str, int] = field(factory=dict)  # split without fingerprint -> number of images


@cache
def public_sets() -> dict[str, PublicSet]:
    """Return the public sets by name, in the order of public_sets.toml."""
    text = resources.files("bsdsbench.loaders.sets").joinpath("public_sets.toml").read_bytes()
    return {name: PublicSet(name, **entry) for name, entry in parse_toml(text).items()}


def public_set(name: str) -> PublicSet:
    """Return a public set by its name, or raise DataError if there is none."""
    if name not in public_sets():
        known = ", ".join(public_sets())
        raise DataError(f"{name!r}: expected one of {known}{did_you_mean(name, public_sets())}")
    return public_sets()[name]


def cache_folder() -> Path:
    """Return the folder of downloaded sets in the user's cache."""
    import pooch

    return Path(pooch.os_cache("bsdsbench")) / "data"


def set_folder(split: str, kind: str = "splits") -> Path:
    """Return the ground-truth folder of a downloaded split or, for kind "images", its photo folder.

    `split` is a name such as "bsds500-test". Raises DataError if the split is not downloaded, or
    cannot be downloaded by name.
    """
    expected = "--gt FOLDER" if kind == "splits" else "the folder of images"
    for public in public_sets().values():
        folders: dict[str, str] = getattr(public, kind)  # name of a split -> its folder in the set
        if split in folders:
            folder = cache_folder() / public.name / folders[split]
            if folder.is_dir():
                return folder
            if public.url:  # without a URL, the error below is raised
                command = f"`bsdsbench data get {public.name}`"
                raise DataError(f"{split}: not here, expected {expected} or {command} before")
    raise DataError(f"{split}: cannot be downloaded by name, expected {expected}")


def download(
    name: str,
    to: str | os.PathLike[str] | None = None,
    url: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Download a public data set, extract the needed files, and verify the ground truth.

    Returns the folder of the set. If the cache already has a complete copy, it is returned without
    another check. Calling again resumes an interrupted download.

    - name: a set of `public_sets`; without a URL of its own, it needs `url`
    - to: a folder that does not exist yet; by default one in the user's cache (`set_folder`)
    - url: a mirror's .zip or .tar.gz, or a local archive; it may lack some splits
    - progress: called with (bytes done, all bytes, URL) during the download, and then with (images
      done, all images, image id) during the check

    Raises DataError if the download fails, or if the archive is damaged, unsafe or has unexpected
    content. Only a partial download is then kept.
    """
    from filelock import FileLock, Timeout

    public = public_set(name)
    source = url or public.url
    if not source:
        # `how` says how to get the set from its web page `home`
        raise DataError(f"{name}: cannot be downloaded by name. {public.how} {public.home}")
    target = Path(to) if to else cache_folder() / name
    if to and target.exists():
        raise DataError(f"{target}: is there already, expected a new folder")
    if target.is_dir() and all((target / folder).is_dir() for folder in public.splits.values()):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    url_hash = hashlib.sha256(source.encode()).hexdigest()[:8]
    archive = target.parent / f".{name}-{url_hash}"  # a download is resumed only from its URL
    lock = FileLock(f"{archive}.lock", timeout=0)
    try:
        with lock, tempfile.TemporaryDirectory(prefix=f".{name}-", dir=target.parent) as scratch:
            is_local = Path(source).is_file()
            unpacked = Path(scratch, "set")
            if not is_local:
                _download(source, archive, progress)
            try:
                _unpack(Path(source) if is_local else archive, public, unpacked)
                _check(unpacked, public, progress)
            except DataError as error:
                raise DataError(f"{source}: {error.problems[0]}; nothing is kept") from None
            finally:
                archive.unlink(missing_ok=True)
            if target.exists():  # an earlier copy lacked some split, as one from a mirror may
                os.replace(target, Path(scratch, "old"))  # deleted with the temporary folder
            os.replace(unpacked, target)
    except Timeout:
        raise DataError(f"{target}: another process is downloading {name}") from None
    Path(lock.lock_file).unlink(missing_ok=True)
    return target


def _download(url: str, archive: Path, progress: Progress | None) -> None:
    """Download `url` to the file `archive`, unless that exists.

    The data are first written to ARCHIVE.part. If the download fails, this file is kept, and the
    next call resumes it, or restarts if the server cannot send the rest. `progress` is called with
    (bytes done, all bytes, URL). Raises DataError if the download fails or the file is empty.
    """
    if archive.exists():
        return
    import requests

    part = archive.with_name(archive.name + ".part")
    failure = ""
    with part.open("ab") as file:
        done = file.tell()
        # Ask for the rest only, without compression, by which the position would mean nothing
        headers = {"Range": f"bytes={done}-", "Accept-Encoding": "identity"} if done else {}
        try:
            with requests.get(url, headers=headers, stream=True, timeout=60) as response:
                blocks = response.iter_content(1 << 18)
                if response.status_code == 416:  # the part is the whole file already
                    blocks = iter(())
                else:
                    response.raise_for_status()
                if response.status_code == 200:  # the server sends the whole file, not the rest
                    done = file.truncate(0)  # 0, the new size
                total = done + int(response.headers.get("Content-Length", 0))  # for progress only
                for block in blocks:
                    done += file.write(block)
                    if progress:
                        progress(done, max(done, total), url)
        except (requests.RequestException, ValueError, OSError) as error:  # ValueError: bad header
            answer = getattr(error, "response", None)
            failure = type(error).__name__ if answer is None else f"status {answer.status_code}"
    size = part.stat().st_size
    if failure and size:
        failure += f"; {size:,} bytes are kept, the same command resumes"
    elif not size:
        part.unlink()
    if failure or not size:
        raise DataError(f"{url}: {failure or 'empty'}, expected an archive")
    os.replace(part, archive)


class _Member(NamedTuple):
    """A member of an archive."""

    path: str  # its path in the archive
    is_plain: bool  # True for a file, False for a folder, link or device
    open: Callable[[], Any]  # opens the file, until the next member is yielded


def _iterate_members(archive: Path) -> Generator[_Member, None, None]:
    """Yield the members of a .zip or .tar archive.

    Raises DataError if a .tar unpacks to more than 2 * MAX_SET bytes. The sizes that a .zip states
    are not checked, so the caller must limit what it reads.
    """
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                mode = entry.external_attr >> 16  # Unix file mode
                is_plain = not (entry.is_dir() or stat.S_ISLNK(mode))
                yield _Member(entry.filename, is_plain, partial(packed.open, entry))
    else:
        with tarfile.open(archive, "r|*") as tar:  # as a stream, of any compression
            size = 0
            for member in tar:
                size += member.size
                if size > 2 * MAX_SET:
                    raise DataError(f"unpacks to more than {2 * MAX_SET >> 30} GB")
                yield _Member(member.name, member.isreg(), partial(tar.extractfile, member))


def _unpack(archive: Path, public: PublicSet, folder: Path) -> None:
    """Extract the needed files of an archive into `folder`.

    A file is needed if the regular expression `public.keep` matches the end of its path. The
    matched part becomes its path below `folder`. Raises DataError if the sha256 differs, or if the
    archive is damaged, too large, has an unsafe path, a needed file twice or as a link, or none at
    all. The caller must then delete `folder`.
    """
    keep = re.compile(f"(?:.*/)?({public.keep})")
    total = 0
    if public.sha256:
        with archive.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if sha256 != public.sha256:
            raise DataError(f"sha256 {sha256}, expected {public.sha256}")
    try:
        with closing(_iterate_members(archive)) as members:
            for path, is_plain, open_member in members:
                if path.startswith("/") or "\\" in path or ".." in PurePosixPath(path).parts:
                    raise DataError(f"{path!r} leads out of the folder")
                match = keep.fullmatch(path)
                if not match or path.endswith("/"):
                    continue
                if not is_plain:
                    raise DataError(f"{path!r} is no plain file")
                with open_member() as stream:
                    content = stream.read(MAX_FILE + 1)
                total += len(content)
                if len(content) > MAX_FILE or total > MAX_SET:
                    raise DataError(f"{path!r} unpacks to more than a picture or annotation has")
                target = folder / match[1]
                target.parent.mkdir(parents=True, exist_ok=True)
                if target.exists():
                    raise DataError(f"{match[1]!r} is there twice")
                target.write_bytes(content)
    except DataError:
        raise
    except DAMAGED as error:
        raise DataError(f"{error}, expected .zip or .tar.gz") from None
    if not total:
        raise DataError(f"nothing of {public.name} in it")


def _check(folder: Path, public: PublicSet, progress: Progress | None) -> None:
    """Verify the ground truth of all splits in a downloaded folder.

    A split must have the number of images in `public.counts` or, if it is not listed there, the
    images of the known set of its name, by their fingerprints (hashes of the annotations).
    `progress` is called after each image with (images done, all images, image id). Raises DataError
    if a split differs or cannot be read, or if there is no split.
    """
    from bsdsbench.loaders.sets.identity import folder_fingerprints, identify
    from bsdsbench.protocol.protocol import Protocol

    protocol = Protocol.preset(public.protocol)
    split_folders = dict.fromkeys(public.splits.values())  # each once, in order
    present = [name for name in split_folders if (folder / name).is_dir()]
    for split_folder in present:
        # Several splits of one folder are editions of a set: it has the images of any one of them
        editions = [name for name, other in public.splits.items() if other == split_folder]
        images = folder_fingerprints(folder / split_folder, protocol, progress=progress)
        identity = identify(images)  # the known set that has these images
        n_expected = public.counts.get(editions[0])  # None for editions, which are all known sets
        if n_expected:
            is_sound, expected = len(images) == n_expected, f"{n_expected} images of {editions[0]}"
        else:
            is_complete = identity.whole  # all images of a known set, unaltered
            is_sound, expected = is_complete and identity.name in editions, " or ".join(editions)
        if not is_sound:
            raise DataError(f"{split_folder} is {identity.describe()}, expected {expected}")
    if public.splits and not present:
        raise DataError(f"no ground truth of {public.name} in it")
