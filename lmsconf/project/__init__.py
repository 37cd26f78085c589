"""The project file: settings, credentials, trust, and the files of a new project.

discovery            locate the project file
config_reader        parse and validate it
config_file          its settings, merged for a workspace
ownership_keys       what it may say of each kind: which sections can be owned, which patterns match an address
settings             merge flags, environment and project file into one frozen Settings
credentials          token sources: environment variable, file, command
command_allowlist    which token commands the user has allowed to run
base_trust           which parts of a branch's project file must match the base
templates            the files that `lmsconf init` writes
"""
