"""Schema validation, cross-resource checks, and suggestions of what to write instead."""
