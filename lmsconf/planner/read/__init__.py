"""Read a workspace in four phases: the listings that a plan needs, of each kind, concurrently, into a snapshot.

read_all_kinds                  the phases; the job of people
fields_and_groups, assignments  a job for each other kind
needed_listings                 which listings are needed, and what the jobs share
people_listings                 listings of people, and their answers in compact form
learner_progress                progress and certificates of those who lose a content, and who is in progress
"""
