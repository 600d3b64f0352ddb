"""Public names stay what they are, whatever submodule has been imported before."""

import pytest

import bsdsbench


def test_no_public_name_is_hidden_by_a_module_of_that_name():
    """Importing bsdsbench.x sets the attribute x of the package, and would shadow a function x."""
    packages = {package.split(".")[1] for package in bsdsbench._PACKAGES}
    assert not packages & set(bsdsbench._HOME)


def test_integrations_are_imported_when_first_used():
    assert bsdsbench.integrations.detectors.__name__ == "bsdsbench.integrations.detectors"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = bsdsbench.integrations.nothing
