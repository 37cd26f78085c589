"""One command in many workspaces of one project.

label_selector   `--select`: workspaces by their labels
tasks            one command in one workspace: settings, connection, result and files
worker           a process that runs tasks, one after the other
local_engine     worker processes on this machine
fleet_run        the tasks of a command, its engine, and the index of results
waves            which workspaces an apply changes first, and when it stops
shared_changes   changes that many plans have in common

A task is a workspace, an action and options; its result is an entry of the index, and a file. Nothing else passes
between the coordinator and what runs a task: no token, no connection, no value of a plan.
"""
