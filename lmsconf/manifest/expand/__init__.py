"""Variables, `for_each`, sets, `except` and CSV files written out, so that entries are plain."""
