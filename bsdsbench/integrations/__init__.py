"""Adapters for other programs: pytest, torch, torchmetrics, detectors, other benchmarks."""
