"""Errors in inputs (doctor), and reasons why a score differs from a published one (explain)."""
