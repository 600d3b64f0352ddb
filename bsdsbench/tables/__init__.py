"""Results for people: the table model, and one module per output format."""
