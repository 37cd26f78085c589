"""The embedded workspace: a learning platform on SQLite that follows the API specification exactly.

store                     transactions and checkpoints of the tables in schema.sql; the only access to sqlite3
request_context           checks requests against the API description; what a handler works with; handlers that are SQL
handlers/                 the operations, by subject; behaviour where the specification is silent
service                   request → validation → handler → response, without a network; an httpx transport
faults                    scripted faults, from a file or from values
serve                     a loopback port, with an HTML page
seed                      initial content, from a file of YAML or from values
seed_format               what the sections of a seed hold
seed_loader               fill a workspace from a seed
synthetic_seed            synthetic workspaces of any size
"""
