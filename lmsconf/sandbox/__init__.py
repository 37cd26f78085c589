"""The embedded workspace: a learning platform on SQLite that follows the API's specification to the letter.

tables, store      where things stand, and transactions; the door to sqlite3
checks             is the request what the API description says?
desk, refusal      what a handler works with, and how it says no
handlers/          one module an endpoint group
service            request → checks → handler → answer, without a network
faults             what goes wrong, on script
transport, serve   the two doors: in process for httpx, and a loopback port
seed, planting     a first workspace, from a file or from values
plainyaml          YAML in which every scalar is text
generate           a workspace that is made up, of any size
"""
