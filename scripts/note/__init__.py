"""The worked examples of the documents that this package's curves come from, remade."""
