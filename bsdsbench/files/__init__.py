"""Access to the disk: bounded reading, atomic writing, escapes, one-line errors."""
