"""Custom fields and their choices."""
