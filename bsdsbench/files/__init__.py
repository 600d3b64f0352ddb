"""Between us and the disk: bounded reading, atomic writing, escapes, errors of one line."""
