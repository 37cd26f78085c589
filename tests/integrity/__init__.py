"""Plans that still fit, files that were not edited, guards to the letter, and commands that only read."""
