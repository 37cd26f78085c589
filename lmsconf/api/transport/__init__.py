"""HTTP: sending one request within a deadline, and what a failure says about whether it was delivered."""
