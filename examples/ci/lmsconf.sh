#!/bin/sh
# lmsconf in any CI system, from the folder of the project file, with the token where the project file says:
#
#   lmsconf.sh plan            on a change that is up for review; keep plan.html and plan.json, show plan.md; where the
#                              manifests have errors, plan.md says which, at which lines
#   lmsconf.sh apply DIGEST    after it was merged: applies only the plan that was reviewed, and keeps report.json
#   lmsconf.sh drift           every night: exit 2 when somebody changed something by hand; drift.xml is JUnit
#
# Never run two applies at a time. The exit codes are those of lmsconf: 3 means that the plan has changed since.
set -eu

case $#:${1:-} in
  1:plan)
    lmsconf plan --out plan.json --format markdown --limit none --output plan.md
    lmsconf show plan.json
    lmsconf show plan.json --format html --output plan.html
    lmsconf show plan.json --format digest
    ;;
  2:apply)
    lmsconf apply --expect-digest "$2" --format json --output report.json
    ;;
  1:drift)
    lmsconf drift --format junit --output drift.xml
    ;;
  *)
    echo "usage: $0 plan | apply DIGEST | drift" >&2
    exit 64
    ;;
esac
