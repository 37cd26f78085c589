"""Read-only checks of a workspace and its service.

checks      connection, token, clock, pages, fields, names that are live twice
token       when the credential expires, decoded without showing it
pages       the largest page that each listing returns
assumptions which dialect keys the manifests depend on
"""
