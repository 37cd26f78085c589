"""The embedded workspace: a learning platform on SQLite that follows the API specification exactly.

tables, store             schema, transactions and checkpoints; the only access to sqlite3
request_validation        validates requests against the API description
request_context, api_refusal
                          what a handler works with, and its error responses
applications, api_keys    the applications that people have access to, and the API keys
handlers/                 one module per endpoint group; enrollment: by which assignment, and progress
unspecified_behaviour     its behaviour where the specification is silent
service                   request → validation → handler → response, without a network
faults, fault_file        scripted faults; scripts from a file
transport, serve          the two adapters: an httpx transport, and a loopback port
html_page                 the HTML page at that port
seed                      initial content, from a file or from values
seed_loader, seed_rows, seed_learning_history, seed_entry
                          fill a workspace from the entries of a seed; typed reads of an entry
text_only_yaml            YAML with every scalar as text
synthetic_seed            synthetic workspaces of any size
"""
