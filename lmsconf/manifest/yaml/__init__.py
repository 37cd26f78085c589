"""YAML and CSV files → nodes that know their places."""
