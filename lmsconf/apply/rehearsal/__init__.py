"""Rehearse a plan: its own calls, with the real applier, on a twin of the workspace in memory.

reading_cost    what a full reading of the workspace costs, from the first page of each listing
twin            a snapshot → an embedded workspace in memory, on a clock of its own
rehearse        check the twin, send the calls, read back, plan again → Rehearsal
rehearsed_plan  plan on a snapshot of the whole workspace, and rehearse that plan
receipts        whether the receipt in a plan file fits its plan
"""
