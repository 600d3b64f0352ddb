"""DataError: every problem is one printable line, whatever a file is called."""

import pickle

from bsdsbench.files.errors import DataError, FileFormatError, visible


def test_lines_stay_lines():
    error = DataError("a\nb\x1b[31m: bad")
    assert error.problems == ("a\\nb\\x1b[31m: bad",)
    assert str(error) == error.problems[0]
    error = DataError("ignored", ["one\n", "tw\u202eo", "sur\udcff"])
    assert error.problems == ("one\\n", "tw\\u202eo", "sur\\udcff")
    assert str(error).splitlines() == list(error.problems)


def test_collecting_and_pickling_keep_every_line():
    joined = DataError.collect([FileFormatError("a"), DataError("", ["b", "c"])])
    assert joined.problems == ("a", "b", "c")
    again = pickle.loads(pickle.dumps(joined))
    assert (type(again), again.problems, str(again)) == (DataError, joined.problems, "a\nb\nc")


def test_ordinary_text_is_untouched():
    for text in ("", "C:\\x\\n.png", "\u00fcml\u00e4ut <b>'\""):
        assert visible(text) == text
