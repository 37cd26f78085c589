"""Manual groups with members and managers."""
