"""Editing manifests in place."""
