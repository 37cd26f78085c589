"""Read a workspace: the listings that a plan needs, of each kind, concurrently, into a snapshot.

read_all_kinds                  all kinds at once
needed_listings                 which listings are needed, and what the jobs that read them share
fields_and_groups, people, assignments
                                one job each
people_listings                 listings of people, and their answers in compact form
target_requests                 the targets of contents, one request for each
"""
