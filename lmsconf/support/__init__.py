"""Utilities for all packages: atomic files, redaction of secrets, package data, URL rules, hardened git."""
