"""The project file: settings, credentials, trust, and the files of a new project.

discovery                    where the project file is
config_file, settings        its content; flags, environment and file as one frozen value
credentials, approvals       tokens, and which commands may be run to get one
trust                        what a branch's project file may not change alone
templates                    the files of `lmsconf init`
"""
