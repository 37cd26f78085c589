"""The project file: settings, credentials, trust, and the files of a new project.

config_reader      parse and validate the project file, and the workspaces of a table that it names
config_file        its settings, merged for a workspace
settings           locate it, and merge flags, environment and project file into one frozen Settings
credentials        token sources: environment variable, file, command; which commands the user has allowed to run, and
                   which parts of a branch's project file must match the base
templates          the files that `lmsconf init` writes, and the schemas for editors
"""
