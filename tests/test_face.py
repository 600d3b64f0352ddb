"""What a type checker, an editor and a reader see of the package."""

import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

import bsdsbench as bb
from bsdsbench.runs import keywords

TYPING = Path(__file__).parent / "typing"
# What no type of an entry point is taken from, and takes mypy seconds.
NOT_READ = ["scipy.*", "skimage.*", "matplotlib.*", "PIL.*", "imageio.*", "pandas.*", "dask.*"]
NOT_READ += ["distributed.*", "h5py.*", "sklearn.*", "rich.*", "requests.*", "pooch.*"]
ENTRY_POINTS = (
    keywords.RunOptions,
    keywords.HumanOptions,
    keywords.ItemOptions,
    keywords.DetectorOptions,
)


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """What mypy says of both files, strictly: (file, line) of each error.

    By the settings of the project, but for what both only import: of this package no bodies of
    functions are checked, as `mypy` without arguments does that, and others are not read."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("mypy")
    settings = folder / "pyproject.toml"
    others = (
        f'[[tool.mypy.overrides]]\nmodule = {NOT_READ}\nfollow_imports = "skip"\n'
        '[[tool.mypy.overrides]]\nmodule = ["bsdsbench.*"]\nfollow_imports = "silent"\n'
    )
    settings.write_text((TYPING.parents[1] / "pyproject.toml").read_text("utf-8") + others)
    words = ("--config-file", settings, "--cache-dir", folder)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words, TYPING / "right.py", TYPING / "wrong.py"],
        capture_output=True,
        text=True,
        cwd=TYPING.parents[1],
        check=False,
    )
    errors = re.findall(r"(\w+)\.py:(\d+): error", done.stdout)
    assert errors, done.stdout + done.stderr
    return {(name, int(line)) for name, line in errors}


@pytest.mark.process
@pytest.mark.slow
def test_a_type_checker_refuses_each_wrong_call_and_no_right_one(refused):
    lines = (TYPING / "wrong.py").read_text("utf-8").splitlines()
    wrong = {("wrong", k) for k, line in enumerate(lines, 1) if "# wrong:" in line}
    assert len(wrong) >= 20
    assert refused == wrong


def test_every_keyword_is_a_field_of_the_same_type():
    fields = {field.name: field.type for field in attrs.fields(keywords.RunKeywords)}
    for known in ENTRY_POINTS:
        for name, kind in known.__annotations__.items():
            if kind.__forward_arg__ == "Required[StrPath]":  # a detector's maps need a folder
                assert (name, fields[name]) == ("out", "StrPath | None")
            else:
                assert kind.__forward_arg__ == fields[name], (known.__name__, name)


def test_every_keyword_is_explained():
    for field in attrs.fields(keywords.RunKeywords):
        text = field.metadata["help"]
        assert text[0].isupper(), field.name
        assert text.endswith("."), field.name


def test_what_type_checkers_see_is_what_is_imported_late():
    """The imports for type checkers name the modules that `_HOME` and `_MODULES` do."""
    source = Path(bb.__file__).read_text("utf-8")
    seen = re.findall(r"^    from bsdsbench(?:\.([\w.]+))? import (\w+) as (\w+)", source, re.M)
    names = {name: module for module, name, public in seen if public in bb._HOME}
    assert names == bb._HOME
    modules = {public: f"{at}.{name}".lstrip(".") for at, name, public in seen}
    assert {k: v for k, v in modules.items() if k not in bb._HOME} == bb._MODULES


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: bb.evaluate("a", "b", protcol="bsds500"), "evaluate.*'protcol'.*protocol"),
        (lambda: bb.evaluate_humans("a", missing="zero"), "evaluate_humans.*'missing'"),
        (lambda: bb.run("canny", "images", out="o", worker=2), "run.*'worker'.*workers"),
    ],
)
def test_an_unknown_keyword_is_named_with_its_function(call, hint):
    with pytest.raises(TypeError, match=hint):
        call()
