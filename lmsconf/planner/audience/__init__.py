"""What a plan does to people, as far as it follows from memberships, answers and assignments.

people_sets       who has which content: people as bits, audiences as sets of bits, assignments as windows
affected          which contents, audiences and answers the changes of a plan can affect
access_facts      what was read to know who has what, and what is asked beside the effects
choice_holders    which people hold which choices, before and after a plan
membership        who is in which audience, and what assignments a content has, before and after a plan
people_questions  answers to questions about one person or audience, and to the tests of manifests
effects           people before and after → the effects, the rows of `--people`, and what the guards count
access_reports    what one person has and why, who is in one audience, and the results of tests
"""
