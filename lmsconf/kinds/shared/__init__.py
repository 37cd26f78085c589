"""Code shared by several kinds: what a plan knows, matching by name, keys of entries, lists of people, responses."""
