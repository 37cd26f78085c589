"""Plans and drift as one HTML file that loads nothing from elsewhere."""
