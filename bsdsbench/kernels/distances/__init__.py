"""Outlines of masks and labels, distances between them, and pixels within a radius."""
