"""What several kinds use: lists of people, names and renames, listings, the reading of a workspace."""
