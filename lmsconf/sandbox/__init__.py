"""The embedded workspace: a learning platform on SQLite that follows the API's specification to the letter.

tables, store      where things stand, transactions, and checkpoints; the door to sqlite3
checks             is the request what the API description says?
desk, refusal      what a handler works with, and how it says no
applications, keys what people may have access to, and the credentials of the API
handlers/          one module an endpoint group; standing: who is enrolled, and how far they have come
choices            what it does where the specification is silent
service            request → checks → handler → answer, without a network
faults, faultfile  what goes wrong, on script; scripts from a file
transport, serve   the two doors: in process for httpx, and a loopback port
page               what a browser is shown at that port
seed, planting …   a first workspace, from a file or from values; entry: how one of its entries is read
plainyaml          YAML in which every scalar is text
generate           a workspace that is made up, of any size
"""
