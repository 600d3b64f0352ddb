"""Adapters for other programs: pytest, torchmetrics, detectors."""

from bsdsbench.files.late import late

# torchmetrics needs torch
_MODULES = {"detectors": "integrations.detectors", "torchmetrics": "integrations.torchmetrics"}
__getattr__ = late(__name__, {}, _MODULES)
