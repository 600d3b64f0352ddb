"""Preprocessing of maps before evaluation: inversion, NMS, thinning, resizing."""
