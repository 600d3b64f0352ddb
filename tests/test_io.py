"""JSON, TOML and messages of whatever size and depth: bounded, one short line each."""

import pytest

from bsdsbench import io as bounded
from bsdsbench.errors import DataError, FileFormatError
from bsdsbench.io import parse_json, parse_toml, read_json
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.text import LINE, shorten


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("9" * 5000, "is damaged"),
        ("1e999", "has the number 1e999, expected a finite one"),
        ("NaN", "has the number NaN"),
        ("[1, 2]", "is JSON but no object, expected a thing"),
        ("{", "not JSON: Expecting"),
        ("", r"is empty \(0 bytes\)"),
    ],
)
def test_json_of_any_kind_is_one_line(tmp_path, text, words):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=words) as caught:
        read_json(path, "a thing")
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) <= LINE


def test_json_of_too_many_values(monkeypatch):
    monkeypatch.setattr(bounded, "MAX_VALUES", 10)
    assert parse_json(b"[1, 2, 3]") == [1, 2, 3]
    with pytest.raises(bounded.FaultError, match="more than 10 values"):
        parse_json(b"[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]")


@pytest.mark.parametrize("parse", [parse_json, parse_toml])
def test_bytes_that_are_no_utf8_are_no_document(parse):
    with pytest.raises(bounded.FaultError, match=f"not {parse.__name__[6:].upper()}: .utf-8"):
        parse(b"\xff\xfe[]")


@pytest.mark.parametrize("text", [b"a = .5", b"a = [1.0, -.5]"])
def test_a_number_without_its_zero_is_no_toml(text):
    with pytest.raises(bounded.FaultError, match=r"not TOML: .*begin with a digit: 0\.5, not \.5"):
        parse_toml(text)
    assert parse_toml(text.replace(b".5", b"0.5"))["a"]


def test_sound_json_and_toml_are_read():
    assert parse_json(b'\xef\xbb\xbf{"a": [1, -2.5, true, null, "x"]}') == {
        "a": [1, -2.5, True, None, "x"]
    }
    assert parse_toml(b"a = 1\n[b]\nc = [1, 2]\n") == {"a": 1, "b": {"c": [1, 2]}}


@pytest.mark.parametrize(
    "text",
    [
        "thresholds = " + "[" * 5000 + "]" * 5000,
        "thresholds = [" + "9" * 400 + "]",
        "max_dist_px = 1e308",
        "max_dist = nan",
        'name = "' + "x" * 131_073 + '"',
        "x" * 131_073 + " = 1",
        "nms_params = 3",
        "semantic = []",
        "thresholds = {a = 1}",
    ],
)
def test_a_protocol_file_of_any_kind_is_one_short_line(tmp_path, text):
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=r"a\.toml: ") as caught:
        Protocol.load(path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= LINE


def test_long_lines_keep_their_beginning_and_their_end():
    assert shorten("short") == "short"
    line = str(DataError("begin" + "x" * 10_000 + "end"))
    assert len(line) == LINE
    assert line.startswith("begin")
    assert line.endswith("end")
