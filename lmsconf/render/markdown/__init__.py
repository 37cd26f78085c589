"""Plans and drift as Markdown for comments of pull requests."""
