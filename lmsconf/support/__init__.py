"""Utilities for all packages: atomic files, redaction, package data, URL rules, hardened git."""
