"""Expansion of variables, `for_each`, sets, windows, `use`, `except`, CSV files and workbooks into plain entries."""
