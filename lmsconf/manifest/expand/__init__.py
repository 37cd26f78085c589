"""Expansion of variables, `for_each`, sets, `use`, `except` and CSV files into plain entries."""
