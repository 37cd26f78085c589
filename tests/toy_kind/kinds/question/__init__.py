"""Questions: a kind with a name and one setting, kept apart from the package."""
