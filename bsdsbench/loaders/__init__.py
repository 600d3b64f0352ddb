"""Reading: images, MATLAB and numpy files, pairing, official txt files, the sample."""

from bsdsbench.loaders.sample import sample_results, sample_root

__all__ = ["sample_results", "sample_root"]
