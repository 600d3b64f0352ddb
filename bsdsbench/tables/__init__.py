"""Results as people see them: the table model, and one module per form it is written in."""
