"""The lock object: one run at a time, on whatever machine."""
