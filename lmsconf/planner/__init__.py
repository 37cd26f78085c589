"""Desired resources and a snapshot → a plan, for any kind.

kind, context                the protocol of a kind, and the state of one planning
selection, additive          which resources are planned: `--only`, `--except`, `--additive`
identity, matching           which declaration describes which live resource
plan, diff                   what differs, as changes
calls, ordering              changes → calls in an order that works
renames                      creations that may be live resources under a new name
measures, guards             what a plan takes away, and which limits it exceeds
drift                        a plan of everything → what drifted
"""
