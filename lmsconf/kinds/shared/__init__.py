"""Code shared by several kinds: lists of people, names and renames, listings, reading a workspace."""
