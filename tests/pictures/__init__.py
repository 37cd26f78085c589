"""The README's pictures, made from the examples: `python -m tests.pictures` writes them to `examples/pictures`."""
