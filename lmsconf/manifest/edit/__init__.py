"""Edits of manifests in place: comments, order and formatting of all other lines are kept.

    tree_builder    YAML → nodes with start and end offsets, and pending edits
    text_edits      one file as text, edits of flow and block style, and values as YAML text, quoted where needed
    yaml_editor     one manifest: pending edits, of its lists too → new text, parsed again before it is returned
    ordering        the parts of a manifest in order

An entry that an alias, a variable, `for_each`, a set or a CSV file produces is not edited; the error gives its
location.
"""
