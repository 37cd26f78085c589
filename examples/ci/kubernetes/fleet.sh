#!/bin/sh
# Plans many workspaces in pods of Kubernetes, and prints what their plans have in common:
#
#   fleet.sh IMAGE SHARDS      IMAGE: lmsconf and the project, by its digest; the namespace lmsconf has the Secret with tokens
#
# The plans stay on the volume of fleet-volume.yaml, in the folder `collected`, until the next run deletes them.
set -eu

[ $# = 2 ] || { echo "usage: $0 IMAGE SHARDS" >&2; exit 64; }
here=$(dirname "$0")
job=$(lmsconf fleet matrix --format kubernetes --image "$1" --shards "$2")

# Plans of an earlier run must not be taken for those of this one.
kubectl -n lmsconf delete job lmsconf-fleet-plan lmsconf-fleet-collect --ignore-not-found
kubectl -n lmsconf delete pvc lmsconf-fleet-plan --ignore-not-found

is() { kubectl -n lmsconf get job "$1" -o 'jsonpath={.status.conditions[*].type}' | grep -Eqw "$2"; }
wait_for() { until is "$1" 'Complete|Failed'; do sleep 5; done; }

kubectl -n lmsconf apply -f "$here/fleet-volume.yaml"
printf '%s\n' "$job" | kubectl -n lmsconf apply -f -
wait_for lmsconf-fleet-plan
sed "s|image: .*|image: $1|" "$here/fleet-collect.yaml" | kubectl -n lmsconf apply -f -
wait_for lmsconf-fleet-collect
kubectl -n lmsconf logs job/lmsconf-fleet-collect
is lmsconf-fleet-collect Complete
