"""The fixtures of these tests."""

from fleet.fleet_project import fleet
from fleet.served_fleet import served

__all__ = ["fleet", "served"]
