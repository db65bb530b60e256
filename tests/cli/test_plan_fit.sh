#!/usr/bin/env bash
# mural plan --fit: what goes where, reasons, wrong usage. SPDX-License-Identifier: MIT
set -euo pipefail
mural=$1
here=$(cd "$(dirname "$0")" && pwd)
rows=$here/../cases/epoch-times.csv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
	echo "$1" >&2
	exit 1
}

awk -F, 'NR == 1 || ($1 == "vector" && $6 <= 4)' "$rows" >measured.csv
awk -F, 'NR == 1 || ($1 == "vector" && $6 > 4)' "$rows" >wanted.csv
"$mural" plan --fit measured.csv --predict wanted.csv >out.csv 2>words || fail "$(cat words)"
head -n 1 out.csv | grep -q ',epochs,predicted_seconds,relative_error$' || fail "header: $(head -n 1 out.csv)"
[ "$(wc -l <out.csv)" = "$(wc -l <wanted.csv)" ] || fail 'not a row per wanted row'
cut -d, -f1-12 out.csv | cmp - wanted.csv || fail 'wanted rows were changed'
grep -q '21 of 21 wanted rows predicted; 21 compared .* median error 1\.' words || fail "$(cat words)"

"$mural" plan --fit measured.csv --predict wanted.csv --output into.csv --result result.json >words || fail 'into a file'
cmp out.csv into.csv || fail 'a file differs from the standard output'
grep -q 'median error' words && grep -q '"median_error": 0.01' result.json || fail 'no summary'
"$mural" plan --fit measured.csv --describe | grep -q 'ring all-reduce' || fail 'no description'

# a row that cannot be told has a reason, and the others their prediction
sed 's/T4/T9/; 3,$d' wanted.csv >other.csv
sed -n '2p' wanted.csv >>other.csv
"$mural" plan --fit measured.csv --predict other.csv >out.csv 2>words || fail 'a reason is no failure'
grep -q 'no prediction for other.csv:2: no measured row has cluster "vector" and GPU "T9"' words || fail "$(cat words)"
[ "$(sed -n '2p' out.csv | grep -c ',,$')" = 1 ] && [ "$(sed -n '3p' out.csv | grep -c ',,$')" = 0 ] || fail "$(cat out.csv)"

# expect CODE PATTERN ARGUMENT...
expect() {
	local code=0
	"$mural" plan "${@:3}" >out 2>words || code=$?
	[ "$code" = "$1" ] || fail "plan ${*:3}: exit code $code, expected $1: $(cat words)"
	grep -q -- "$2" words || fail "plan ${*:3}: $(cat words)"
	[ "$(grep -c '^mural: ' words)" = 1 ] || fail "plan ${*:3}: not one message: $(cat words)"
}
echo 'cluster,gpus' >columns.csv
head -n 1 wanted.csv >none.csv
expect 2 'expected a value' --fit
expect 2 'wanted epochs, or --describe' --fit measured.csv
expect 2 'CSV file of measured' --predict wanted.csv
expect 2 'an option of --fit' --fit measured.csv --predict wanted.csv --rank 2
expect 2 'pack or spread' --fit measured.csv --predict wanted.csv --placement near
expect 3 'no column "gpu"' --fit columns.csv --predict wanted.csv
expect 3 'no row' --fit none.csv --predict wanted.csv
expect 3 'missing.csv' --fit measured.csv --predict missing.csv
expect 3 'already has a column "predicted_seconds"' --fit measured.csv --predict into.csv
expect 1 'Not a directory' --fit measured.csv --predict wanted.csv --output /dev/null/nowhere
[ ! -s out ] || fail 'something was written all the same'
