"""The embedded workspace: a learning platform on SQLite that follows the API specification exactly.

tables, store      schema, transactions and checkpoints; the only access to sqlite3
checks             validates requests against the API description
request_context, api_refusal
                   what a handler works with, and its error responses
applications, keys the applications that people have access to, and the API keys
handlers/          one module per endpoint group; standing: enrolment and progress
choices            its behaviour where the specification is silent
service            request → checks → handler → response, without a network
faults, faultfile  scripted faults; scripts from a file
transport, serve   the two adapters: an httpx transport, and a loopback port
page               the HTML page at that port
seed, fixtures …   initial content, from a file or from values; validation: typed reads of its entries
text_only_yaml        YAML with every scalar as text
generate           synthetic workspaces of any size
"""
