"""What a plan does to people, as far as it follows from memberships, answers and assignments.

scope        which contents, audiences and answers the changes of a plan can affect
query        what is asked beside the effects, by names after the plan
facts        what was read to know who has what
answers      which people hold which choices, before and after a plan
membership   who is in which audience, and what assignments a content has, before and after a plan
state        facts → answers to questions about one person or audience, and for tests
prediction   scope + facts → the effects of a plan
results      progress and certificates of those who lose a content
"""
