"""The pictures of README and guide: `python -m tests.pictures` makes them from the examples."""
