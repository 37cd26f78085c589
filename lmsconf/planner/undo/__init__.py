"""Undo a run: what it changed, as declarations that change it back, for the normal planner.

run        the recorded run: its plan, what became of its calls, and the workspace as it was
names      references in entries, and the names that the undo gives back
times      the resources before the run, as it made them, and now, by the names that they have after the undo
drafts     the entries that undo one change each, with the value of the three that undoes it
inverse    all entries as Manifests, with what is left alone
extent     what is kept of the workspace when a plan is applied, and how far a plan can be undone
"""
