#!/usr/bin/env bash
# mural study: measures its points, writes its files, goes on where it stopped, outlives a run that fails.
# SPDX-License-Identifier: MIT
set -euo pipefail
mural=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
model=(--model mu --image-size 8 --patch 4 --channels 1 --classes 4 --data synthetic --synthetic-images 64 --threads 1)

fail() {
	echo "$1" >&2
	exit 1
}

study() {
	"$mural" study "$@" "${model[@]}" >out 2>err || return $?
}

study strong --folder s --ranks 1,2 --batches 8 --rounds 2 --steps 2 --warm-up 1 --result copy.json || fail "strong: $(cat out err)"
[ "$(wc -l <s/study.csv)" = 5 ] || fail 'strong: study.csv has not one row per run'
grep -q '^strong-r2-b8-fp32,2,2,8,1,fp32,,1,measured,2,' s/study.csv || fail "strong: a row is missing: $(cat s/study.csv)"
grep -q '"speed_up"' s/study.json && cmp -s s/study.json copy.json || fail 'strong: study.json or its copy is wrong'
grep -q ',64$' s/epochs.csv || fail 'strong: epochs.csv does not tell the images'
grep -q '4 runs of 2 points .* 0 measured before, 0 failed' out || fail "strong: $(cat out)"

# the same command measures nothing again; another one does
study strong --folder s --ranks 1,2 --batches 8 --rounds 2 --steps 2 --warm-up 1 || fail "again: $(cat out err)"
grep -q '4 measured before' out || fail "again: $(cat out)"
rm s/points/strong-r2-b8-fp32.1/result.json
study strong --folder s --ranks 1,2 --batches 8 --rounds 2 --steps 2 --warm-up 1 || fail "one missing: $(cat out err)"
grep -q '3 measured before' out || fail "one missing: $(cat out)"
study strong --folder s --ranks 1,2 --batches 8 --rounds 2 --steps 3 --warm-up 1 || fail "other: $(cat out err)"
grep -q ' 0 measured before' out || fail "other: $(cat out)"

# a batch larger than the data set fails, the other points do not
code=0
study batch --folder b --ranks 1 --batches 8,4096 --rounds 1 --steps 2 --warm-up 0 --drop-last || code=$?
[ $code = 1 ] || fail "failing point: exit code $code"
grep -q '^batch-r1-b8-fp32,1,.*,measured,' b/study.csv || fail 'failing point: the good one is missing'
grep -q '^batch-r1-b4096-fp32,1,.*,failed,.*mural: ' b/study.csv || fail "failing point: $(cat b/study.csv)"
grep -q '1 of 2 runs failed' err || fail "failing point: $(cat err)"

# whole epochs measure accuracy
study batch --folder e --ranks 1 --batches 16 --rounds 1 --epochs 1 || fail "epochs: $(cat out err)"
grep -Eq '"test_accuracy": [01]' e/study.json || fail 'epochs: no accuracy'

# wrong usage
for arguments in 'week --folder x' 'strong' 'strong --folder x --ranks 0' 'strong --folder x --ranks 1,' 'strong --folder x --batch 8' \
	'weak --folder x --ranks 20' 'strong --folder x --steps 2 --epochs 1' 'strong --folder x --fraction 2'; do
	code=0
	# shellcheck disable=SC2086 # words
	study $arguments || code=$?
	[ $code = 2 ] || fail "study $arguments: exit code $code"
	[ "$(grep -c '^mural: ' err)" = 1 ] || fail "study $arguments: $(cat err)"
	[ ! -e x ] || fail "study $arguments left a folder"
done
"$mural" study --help | grep -q accumulation || fail 'no help'
