"""Apply a plan safely, and the Python API.

safe_apply                   the safe sequence: locks, digest, staleness, guards, approval, journal, verification
python_api                   `lmsconf.open`: a project with plan, apply, drift, export and snapshot
applier                      executes a plan and reports
replanning                   plans the changes of a plan again, on the workspace as it is now
staleness                    whether a plan still fits the workspace
scheduler, executor          calls in dependency order, concurrently, until Ctrl-C; one call over the connection
phases                       the phases of an apply, and their progress
ambiguous_writes             whether a write without a response was carried out
run_outcome                  exit code of a run, changes without effect
remote_lock                  a lock in the workspace, against runs on other machines
verification                 plans again after a run, and reports differences
"""
