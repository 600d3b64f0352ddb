"""Readers of file formats: bytes to arrays, a file each."""
