"""Editing manifests in place: comments, order and formatting of every other line stay.

    tree_builder                 YAML → nodes that know where they begin and end
    text_buffer, yaml_text       one file as lines; values → YAML text, quoted where needed
    brackets, blocks, lists      edits of `[…]` and `{…}`, of block style, of lists of people, choices and conditions
    yaml_editor                  one manifest: edits → its new text, parsed again before it is returned
    saving                       new texts → files: all of them or none

An entry that an alias, a variable, `for_each`, a set or a CSV file produces is not edited; the error says where it is.
"""
