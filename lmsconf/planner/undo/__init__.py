"""Undo a run: what it changed, as declarations that change it back, for the normal planner.

undone_run        the recorded run: its plan, what became of its calls, and the workspace as it was; references in
                  entries
three_way_merge   the resources before the run, as it made them, and now, by the names of live resources
undo              the entries that undo the changes, with the value of the three that undoes each; what is left alone
kept_state        what is kept of the workspace when a plan is applied, and how much of a change can be undone
"""
