"""Judges that are not ours: other people's tools that hold client and sandbox against schemas/openapi.json."""
