"""Tables of results: the table model, and its conversion to output formats."""
