# Rules for a plan, for Open Policy Agent. Checked with conftest:
#
#     lmsconf plan --out plan.json
#     conftest test --policy examples/policies plan.json
#
# Or with OPA alone: opa eval --data examples/policies --input plan.json data.main.deny
# The keys are those of schemas/plan.schema.json.
package main

import rego.v1

# The largest number of people who may lose one content in one plan.
most_losers := 10

# Someone is responsible for every resource that is created or changed.
deny contains message if {
	some change in input.changes
	change.action in {"create", "update", "replace"}
	not change.about.owner
	message := sprintf("%s has no owner: add `about: {owner: TEAM}` at %s:%d", [
		change.address,
		change.source.file,
		change.source.line,
	])
}

# A deletion has a ticket.
deny contains message if {
	some change in input.changes
	change.action in {"delete", "replace"}
	not change.about.ticket
	message := sprintf("%s is deleted without a ticket: add `about: {ticket: ID}`", [change.address])
}

# Few people lose a content at once.
deny contains message if {
	some content in input.effects.contents
	content.lose > most_losers
	message := sprintf("%d people lose \"%s\", and at most %d may", [content.lose, content.content, most_losers])
}

# Where the number is not known, it is null.
deny contains message if {
	is_null(input.effects.people.lose)
	message := "it is not known how many people lose content"
}

# Changes to administrators are for the identity team.
warn contains message if {
	some change in input.changes
	change.kind == "user"
	message := sprintf("%s is a person: ask the identity team", [change.address])
}
