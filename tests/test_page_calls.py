"""Every sh block of a page runs as it stands, in a folder that has what its calls name.

A block under a comment `<!-- not run: REASON -->` is left out. Calls of bsdsbench are made in this
process, everything else by bash.
"""

import os
import re
import shlex
import subprocess
from pathlib import Path

import click
import imageio.v3 as iio
import numpy as np
import pytest

from bsdsbench.cli import COMMANDS, cli
from bsdsbench.loaders.sample import sample_ground_truth, sample_results
from bsdsbench.metrics import registry
from tests.helpers.reader import parsed, prepare
from tests.helpers.runs import command

ROOT = Path(__file__).parents[1]
PAGES = [
    path
    for path in (ROOT / "README.md", *sorted(ROOT.glob("d*s/**/*.md")))
    if not {"generated", "auto_examples", "_build"} & {*path.parts}
]
BLOCK = re.compile(
    r"(<!-- not run: (?P<reason>[^\n]+) -->\n)?(<!-- [\w-]+ -->\n)?"
    r"^(?P<margin> *)```(sh|bash)\n(?P<body>.*?)^ *```$",
    re.M | re.S,
)
BLOCKS = {page: list(BLOCK.finditer(page.read_text("utf-8"))) for page in PAGES}
# A call of bsdsbench writes down its words, and bash goes on.
NOTED = 'bsdsbench() { printf "%s\\0" "$@" "" >> "$NOTED"; }\n'
THEN = '\nprintf "%s" "$PWD" > "$NOTED.folder"'


def calls_of(block, root):
    """Run a block with bash, go to the folder in which it ends, and return its calls, as words."""
    noted = root / "noted"
    noted.write_bytes(b"")
    subprocess.run(
        ["bash", "-euc", NOTED + block + THEN],
        env={**os.environ, "HOME": str(root / "home"), "NOTED": str(noted)},
        check=True,
        timeout=300,
    )
    os.chdir((root / "noted.folder").read_text("utf-8"))
    return [call.split("\0") for call in noted.read_text("utf-8").split("\0\0") if call]


def called(words, metric):
    """Make a call; with published methods, a run on their images stands in place of ours."""
    prepare(words, metric)
    if any(word.startswith("ref:") or word == "--published" for word in words):
        words = ["ref:egb" if (Path(word) / "result.json").exists() else word for word in words]
    given = parsed(words)
    done = command(*words, *["--workers=1"] * ("workers" in given))
    fine = (0, 1) if words[0] == "explain" else (0,)  # 1: what is compared differs
    assert done.returncode in fine, (words, done.stderr)
    outs = given.get("out") or ()
    assert all(Path(out).exists() for out in ([outs] if isinstance(outs, str) else outs))


# What `~` has of the sample.
HOME = {sample_ground_truth(): "data/groundTruth/test", sample_results("canny"): "maps"}


LITTLE = {"n_boot": 100, "seconds": 1.0}


@pytest.fixture
def few_samples(monkeypatch):
    """Bootstraps of 100 samples and searches of a second, unless a call says otherwise."""
    for verb in COMMANDS:
        for parameter in cli.get_command(click.Context(cli), verb).params:
            if parameter.name in LITTLE:
                monkeypatch.setattr(parameter, "default", LITTLE[parameter.name])


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.usefixtures("few_samples", "brief_search", "small_pictures")
@pytest.mark.filterwarnings("ignore::bsdsbench.errors.InputWarning")
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(not block["reason"] for block in BLOCKS[page])],
    ids=lambda page: page.relative_to(ROOT).with_suffix("").as_posix(),
)
def test_blocks_run_as_they_stand(page, tmp_path, monkeypatch):
    metric = page.stem if page.stem in registry.BUILT_IN else "boundary"
    for folder in ("docs", "datasets"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    for source, folder in HOME.items():
        (tmp_path / "home" / folder).mkdir(parents=True)
        for name in ("fruit1", "lake1"):
            (path,) = source.glob(f"{name}.*")
            (tmp_path / "home" / folder / path.name).symlink_to(path)
    (tmp_path / "home/logo.png").touch()
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(MINE)
    for block in BLOCKS[page]:
        if not block["reason"]:
            for words in calls_of(re.sub(f"(?m)^{block['margin']}", "", block["body"]), tmp_path):
                called(words, metric)


(MINE,) = re.findall(
    r"```toml\n# mine.toml\n(.*?)```", (ROOT / "docs/metrics/contour.md").read_text("utf-8"), re.S
)
HAVE = re.findall(
    r"^\| [^|]+ \| [^|]+ \| `((?:evaluate|curves|compare) [^`]+)`",
    (ROOT / "README.md").read_text("utf-8"),
    re.M,
)


@pytest.mark.slow
@pytest.mark.usefixtures("few_samples", "brief_search", "small_pictures")
@pytest.mark.filterwarnings("ignore::bsdsbench.errors.InputWarning")
@pytest.mark.parametrize("call", HAVE)
def test_what_one_has_gives_what_one_wants(call, tmp_path, monkeypatch):
    assert len(HAVE) > 9
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(MINE)
    called(shlex.split(call), "boundary")


def test_label_maps_become_boundaries_as_the_page_says(tmp_path, monkeypatch):
    page = (ROOT / "datasets/mtl.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    monkeypatch.chdir(tmp_path)
    iio.imwrite("2008_000002.png", np.repeat([[1, 2]], 4, axis=1).astype(np.uint8))
    names = {}
    exec(compile(code, "mtl.md", "exec"), names)
    assert names["gt"].boundaries[0].tolist() == [[False] * 3 + [True] + [False] * 4]


def test_few_blocks_are_not_run_and_each_says_why():
    reasons = [block["reason"] for blocks in BLOCKS.values() for block in blocks if block["reason"]]
    assert len(reasons) <= 12
    written = sum(text.count("<!-- not run: ") for text in map(Path.read_text, PAGES))
    assert written == len(reasons), "a mark stands right before its block"


CALL = re.compile(r"`bsdsbench ([a-z-][^`]+)`")


def test_a_call_in_a_sentence_has_a_verb_and_options_that_there_are():
    for page in PAGES:
        text = re.sub(r"```.*?^ *```", "", page.read_text("utf-8"), flags=re.M | re.S)
        for call in CALL.findall(text):
            words = shlex.split(" ".join(call.split()).replace("...", ""))
            known = flags_of(words)
            flags = [word.partition("=")[0] for word in words if re.match("--?[a-z]", word)]
            assert {*flags} <= known, (page, call)


def flags_of(words):
    """Every option of the verb that a call begins with; of none, the program's."""
    command, known = cli, {"--help", "--version"}
    for word in words:
        if not isinstance(command, click.Group) or word.startswith("-"):
            break
        command = command.get_command(click.Context(command), word)
        assert command is not None, f"{word}: no such verb"
    for parameter in command.params:
        known |= {*parameter.opts, *parameter.secondary_opts}
    return known
