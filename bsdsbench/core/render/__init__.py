"""Tables as text: one module per form, each from the `Table` model alone.

The form follows from a file's suffix; `output` writes the files.
"""
