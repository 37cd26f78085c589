"""Read-only checks of a workspace and its service.

checks                connection, token, clock, pages, fields, names that are live twice
token_expiry          when the credential expires, decoded without showing it
page_size             the largest page that each listing returns
dialect_assumptions   which dialect keys the manifests depend on
"""
