"""What worker processes need, done once in the server that they are forked from.

One module a metric. Importing it imports the metric's rooms and runs it on a tiny map, so that its
kernels are compiled, or read from numba's cache, once and not in every worker.
"""
