"""Apply a plan safely, and the Python API.

safe_apply                   the safe sequence: locks, digest, staleness, guards, approval, journal, verification
python_api                   `lmsconf.open`: a project with plan, apply, drift, export and snapshot
events                       what a run reports: its phases, what it reads, waits for and sends
run                          sends the calls of a plan, verifies the result and reports
replanning                   plans the changes of a plan again: before a run, and to verify it; its exit code
staleness                    whether a plan still fits the workspace
scheduler, executor          calls in dependency order, concurrently, until Ctrl-C; one call over the connection
ambiguous_writes             whether a write without a response was carried out
first_calls, value_search    each assumption about the service is tried with one call; the value that explains a failure
first_changes, manager_rights
                             the list, the answers and the rights that such a call may change along
not_as_planned               what is live in place of what the calls should have made
remote_lock                  a lock in the workspace, against runs on other machines
rehearse                     a plan tried on a twin of the workspace in memory
"""
