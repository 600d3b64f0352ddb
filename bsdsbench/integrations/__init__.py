"""Adapters for other programs: pytest, torchmetrics, detectors."""

from typing import TYPE_CHECKING

from bsdsbench.files.late import late

if TYPE_CHECKING:
    from bsdsbench.integrations import detectors as detectors
    from bsdsbench.integrations import torchmetrics as torchmetrics

# torchmetrics needs torch
_MODULES = {"detectors": "integrations.detectors", "torchmetrics": "integrations.torchmetrics"}
if not TYPE_CHECKING:  # it would give every name the type Any
    __getattr__ = late(__name__, {}, _MODULES)
