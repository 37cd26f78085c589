"""Edits of manifests in place: comments, order and formatting of all other lines are kept.

    tree_builder                 YAML → nodes with start and end offsets, and pending edits
    text_buffer, yaml_text       one file as text; values → YAML text, quoted where needed
    brackets, blocks, lists      edits of flow style, of block style, of lists of people, choices and conditions
    yaml_editor                  one manifest: pending edits → new text, parsed again before it is returned

An entry that an alias, a variable, `for_each`, a set or a CSV file produces is not edited; the error gives its
location.
"""
