"""What is wrong with inputs, and why a score differs from a published one."""
