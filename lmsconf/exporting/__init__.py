"""A live workspace as manifests: what a person would have written, and the plan of it is empty.

live     who and what a snapshot names, and what cannot be named
rows     a live row → what a manifest says of it
trial    what is said is planned at once; whatever would change something is left unsaid
tree     what is said → files, in the order in which people write them
text     values → the YAML of manifests, quoted where it has to be
export   all of it together: Snapshot → files and what was left out
"""
