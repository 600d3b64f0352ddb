"""Detectors that are run: a user's, built-in ones, and NMS of a folder of maps."""
