"""Applying a plan: the one sequence of checks, locks, calls and verification that every caller goes through."""
