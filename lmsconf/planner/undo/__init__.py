"""Undo a run: what it changed, as declarations that change it back, for the normal planner.

undone_run        the recorded run: its plan, what became of its calls, and the workspace as it was; references in
                  entries, and the names that the undo gives back
three_way_merge   the resources before the run, as it made them, and now, by the names that they have after the undo
undo_entries      the entries that undo one change each, with the value of the three that undoes it
undo              all entries as Manifests, with what is left alone
answers           whose answers a run deleted, and which were given since
kept_state        what is kept of the workspace when a plan is applied, and how much of a change can be undone
"""
