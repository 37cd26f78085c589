"""Smart groups: conditions on custom fields, and managers."""
