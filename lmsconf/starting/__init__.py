"""What a new project begins with: answers in, the texts of its files out."""
