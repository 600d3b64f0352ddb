"""Reading of predictions and ground truth: file formats, pairing by image, and known data sets."""

from bsdsbench.loaders.sample import sample_results, sample_root

__all__ = ["sample_results", "sample_root"]
