"""One command in many workspaces of one project.

tasks            one command in one workspace, also where an earlier attempt has applied a part of a plan
worker           a process that runs tasks, one after the other
dask_engine      the workers of a Dask scheduler
dask_worker      what one of them does: a task in a process of its own, if its project is the coordinator's
fleet_run        `--select`, the tasks of a command, worker processes on this machine, and the index of results
waves            which workspaces an apply changes first, and when it stops
shards           documents that make GitHub, GitLab, Argo and Kubernetes run a fleet in shards, and the folders of all
                 shards as one

A task is a workspace, an action and options; its result is an entry of the index, and a file. Nothing else passes
between the coordinator and what runs a task: no token and no connection.
"""
