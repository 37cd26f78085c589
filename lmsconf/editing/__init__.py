"""Editing manifests in place: only the lines that must change do; comments, order and formatting stay.

tree        YAML → nodes that know where they begin and end, and take notes of what is to change
pages       one file as text: its lines, and putting pieces of text in place of others
brackets    notes on `[…]` and `{…}` → pieces of text
blocks      notes on lists and mappings that stand line by line → pieces of text
manuscript  one manifest: notes on its nodes → its new text, read again before anybody gets it
lists       adding to lists of people, choices and conditions, and taking from them
accepting   findings of a drift report → notes that make the manifests say what the workspace has
together    what has to be accepted with something else, and what cannot be accepted
references  a new name, wherever manifests speak of the old one
saving      new texts → files: all of them or none

Nothing is edited that cannot be edited safely: what an alias, a variable, `for_each`, a set or a CSV file says is
refused, with its place and a way out.
"""
