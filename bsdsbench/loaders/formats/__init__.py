"""Readers of file formats, one module per format: they convert bytes to arrays."""
