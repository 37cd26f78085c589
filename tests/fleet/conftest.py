"""The fixture of these tests."""

from fleet.fleet_project import fleet

__all__ = ["fleet"]
