"""Exact one-to-one matching of pixels: the graph, the search, and pairs at other costs."""
