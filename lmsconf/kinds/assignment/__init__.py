"""Content targets: which content is assigned to which audience."""
