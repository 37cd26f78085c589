"""Many workspaces of one project."""
