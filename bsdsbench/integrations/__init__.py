"""Doors to other programs: pytest, torchmetrics."""
