"""What a plan does to people, held against what a workspace says before and after the apply.

evaluator            who has what in a workspace, and what changed between two looks: no line of lmsconf, only answers
                     of the API, sets and dictionaries, and section 9 of the design
random_access        random workspaces and manifests, from a seed
test_evaluated       plans it, applies it, and compares every number of `effects` and every row of `--people`
test_guards_by_people, test_not_known, test_views
                     the guards, numbers that are not known, and the views, with names that nobody asked for

Compared are, per content: before, after, gain, lose, keep, to_mandatory, to_optional, window, shortened, the progress
and the certificates of those who lose, and the counts of each cause; per group and smart group: before, after, join,
leave; the totals of people and of the guards `people` and `mandatory`; and the rows, each with its times, and causes
that are changes of the plan on a path to the content that exists only before or only after. A number may be null only
where the evaluator finds a smart group that is not exact and whose conditions or answers differ.
"""
