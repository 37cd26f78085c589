"""What a plan does to people, as far as it follows from memberships, answers and assignments.

scope        which contents, audiences and answers the changes of a plan can affect
facts        what was read to know who has what
read_facts   reads it
answers      which people hold which choices, before and after a plan
membership   who is in which audience, before and after a plan
assignments  the assignments of a content, before and after a plan
state        facts → answers to questions about one person or audience, and for tests
prediction   scope + facts → the effects of a plan
results      progress and certificates of those who lose a content
"""
