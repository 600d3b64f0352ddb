"""Integrations with other software: pytest, torchmetrics, and the training of detectors."""

from typing import TYPE_CHECKING

from bsdsbench.lazy import lazy_getattr

if TYPE_CHECKING:
    from bsdsbench.integrations import torchmetrics as torchmetrics

# torchmetrics needs torch
_MODULES = {"torchmetrics": "integrations.torchmetrics"}
if not TYPE_CHECKING:  # it would give every name the type Any
    __getattr__ = lazy_getattr(__name__, {}, _MODULES)
