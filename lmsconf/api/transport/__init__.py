"""HTTP: send one request within a deadline, and classify failures by whether the request was delivered."""
