"""Transforms of maps before they are counted: inversion, NMS, thinning, resizing."""
