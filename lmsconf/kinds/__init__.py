"""The five kinds of resources: a folder or a module each, a module for each question about all, and what they share.

kind_table          a row for each kind: names, schemas, where entries refer to others; entry → declared resources
kind_functions      match, differences, steps: which function answers for which kind
export              live resource → manifest entry
grant_verification  how a call that grants access is verified
custom_field, user, group, smart_group, assignment
                    types and parsing, comparison, steps of each
shared              the state of a plan, matching by name, keys of entries, parts of responses
"""
