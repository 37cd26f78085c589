"""One command in many workspaces of one project.

label_selector   `--select`: workspaces by their labels
tasks            one command in one workspace: settings, connection, result and files
worker           a process that runs tasks, one after the other
local_engine     worker processes on this machine, with one rate of requests for each host
dask_engine      the workers of a Dask scheduler
dask_worker      what one of them does: a task in a process of its own
project_digest   whether the project on a worker is the coordinator's
attempts         a plan is applied, or what an attempt on another machine has left of it
fleet_run        the tasks of a command, its engine, and the index of results
waves            which workspaces an apply changes first, and when it stops
matrix           documents that make GitHub and GitLab run a fleet in shards
pod_matrix       the same for Argo and Kubernetes
collect          the folders of all shards, as one
shared_changes   changes that many plans have in common

A task is a workspace, an action and options; its result is an entry of the index, and a file. Nothing else passes
between the coordinator and what runs a task: no token and no connection.
"""
