"""The stored numbers of the package: an alarm for drift."""

import json
import warnings

from scripts import stored_numbers


def test_no_stored_number_has_moved():
    old = json.loads(stored_numbers.STORED.read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # raw maps are thick
        now = json.loads(json.dumps(stored_numbers.numbers()))
    assert stored_numbers.differing(old, now) == []
    assert len(old) > 1_000
    assert stored_numbers.differing({"a/b": 0.5}, {"a/b": 0.5 + 1e-9}) == [
        "a/b: 0.5 -> 0.500000001"
    ]


def test_undefined_gone_and_freed_numbers():
    old = {"a": None, "b": 1.0, "c": 2}
    assert len(stored_numbers.differing(old, {"a": 0.0, "c": 3})) == 3
    assert len(stored_numbers.differing(old, {"a": None, "b": 1.0 + 1e-15})) == 1
