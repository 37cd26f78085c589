"""Undo a run: what it changed, as declarations that change it back, for the normal planner.

run        the recorded run: its plan, what became of its calls, and the workspace as it was
pre_image  the part of a snapshot that a plan changes or destroys, kept when it is applied
names      references in entries ⇄ ids, so that names which changed since are followed
merge      before, after and live value of one key → the value that undoes it, or a conflict
vocabulary names ⇄ ids at one time; times: the resources before the run, as it made them, and now
claims     the names that are given back
drafts     the entries that undo one change each, with ids; writing: with names
inverse    all of them as Manifests, with what is left alone
extent     how far a plan can be undone, as far as names decide that
"""
