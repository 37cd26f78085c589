"""Schema and cross-reference checks, and what to write instead."""
