"""YAML and CSV text → nodes with source positions."""
