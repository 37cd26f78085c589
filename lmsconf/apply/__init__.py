"""Apply a plan safely, and the Python API.

apply                     the safe sequence: locks, digest, staleness, guards, approval, journal, verification
python_api                `lmsconf.open`: a project with plan, apply, drift, export and snapshot
run_plan                  sends the calls of a plan, verifies the result and reports
replanning                plans the changes of a plan again: before a run, and to verify it; its exit code
staleness                 whether a plan still fits the workspace, and has not expired
scheduler, call_executor  calls in dependency order, concurrently, until Ctrl-C, and what a run reports; one call
ambiguous_writes          whether a write without a response was carried out
try_assumptions           each assumption about the service is tried with one call, before others rest on it
search_dialect            the value of the dialect that explains a failure
check_first_changes, side_effects_on_people
                          the list, the answers and the rights that such a call may change along
explain_mismatch          what is live in place of what the calls should have made
remote_lock               a lock in the workspace, against runs on other machines
rehearse                  a plan tried on a twin of the workspace in memory
"""
