"""Plans and drift as text for a terminal."""
