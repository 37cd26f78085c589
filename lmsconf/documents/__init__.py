"""Values ⇄ versioned JSON documents: plan files, apply reports, snapshots, problems. Each has a JSON Schema."""
