"""What any room may use: atomic files, redaction of secrets, package data, URL rules, hardened git."""
