"""The fixtures of these tests."""

from fleet.fleet_project import fleet, served

__all__ = ["fleet", "served"]
