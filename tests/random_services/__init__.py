"""Services whose every open point is drawn, and a project that meets each of them for the first time."""
