"""Undo a run: what it changed, as declarations that change it back, for the normal planner.

run        the recorded run: its plan, what became of its calls, and the workspace as it was
names      references in entries ⇄ ids at one time, so that names which changed since are followed
times      the resources before the run, as it made them, and now, and the value of the three that undoes it
drafts     the entries that undo one change each, with ids
inverse    names given back, and all entries as Manifests, with what is left alone
extent     what is kept of the workspace when a plan is applied, and how far a plan can be undone
"""
