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
grep -q '^strong-r2-b8-fp32,2,2,8,1,fp32,,,,1,measured,2,' s/study.csv || fail "strong: a row is missing: $(cat s/study.csv)"
grep -q '"speed_up"' s/study.json && cmp -s s/study.json copy.json || fail 'strong: study.json or its copy is wrong'
grep -q ',64$' s/epochs.csv || fail 'strong: epochs.csv does not tell the images'
grep -q '4 runs of 2 points .* 0 measured before, 0 failed' out || fail "strong: $(cat out)"

grep -q '^point,round,Timestamp,Rank,Epoch,Computation_Time,GPU_ID,' s/metrics.csv || fail 'strong: metrics.csv has other columns'
[ "$(grep -c '^strong-r2-b8-fp32,[12],.*,[01],1,' s/metrics.csv)" = 4 ] || fail "strong: metrics.csv: $(cat s/metrics.csv)"
for key in efficiency_low serial_fraction_high communication_fraction_low imbalance_seconds own_seconds; do
	grep -q "\"$key\": [-0-9]" s/study.json || fail "strong: study.json has no $key"
done

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

# an emulated cluster: one node against two; who computes longest is told
cat >lab.json <<'END'
{ name: "lab", algorithm: "ring", devices: { fast: { seconds_per_image: 0.01 }, slow: { seconds_per_image: 0.02 } },
  links: { inside: { gb_per_s: 10 }, lan: { gb_per_s: 0.001 } },
  nodes: [ { count: 2, devices: { fast: 1, slow: 1 }, inside: "inside", uplink: "lan" } ] }
END
study placement --folder p --ranks 2 --batches 8 --rounds 1 --steps 2 --warm-up 1 --cluster lab.json || fail "placement: $(cat out err)"
grep -q '^lab,mixed,intra-node,synthetic,2,' p/epochs.csv || fail "placement: $(cat p/epochs.csv)"
grep -q '^lab,fast,inter-node,synthetic,2,' p/epochs.csv || fail "placement: $(cat p/epochs.csv)"
value() { # COLUMN POINT
	awk -F, -v name="$1" -v point="$2" 'NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i} $1 == point {print $at[name]}' p/study.csv
}
pack=placement-r2-b8-fp32-pack spread=placement-r2-b8-fp32-spread
awk -v i="$(value imbalance_seconds $pack)" 'BEGIN {exit !(i > 0.02)}' || fail "imbalance of 0.08 against 0.16 s: $(value imbalance_seconds $pack)"
awk -v a="$(value communication_exposed_seconds $spread)" 'BEGIN {exit !(a > 0.02)}' || fail 'the slow link does not show'

# hosts: this machine twice over, one slot for each rank
printf 'localhost slots=2\n' >hosts
study strong --folder h --ranks 1,2 --batches 8 --rounds 1 --steps 1 --warm-up 0 --hostfile hosts || fail "hosts: $(cat out err)"
grep -qx 'localhost:0,1' h/points/strong-r2-b8-fp32.1/command.txt || fail "hosts: $(cat h/points/strong-r2-b8-fp32.1/command.txt)"

# Ctrl-C: what was measured is kept, and the same command goes on
sed 's/seconds_per_image: [0-9.]*/seconds_per_image: 0.05/g' lab.json >slow.json # steps that a busy machine keeps up with
long=(strong "${model[@]}" --folder c --ranks "1,2" --batches 8 --rounds 1 --steps 8 --warm-up 0 --synthetic-images 320 --cluster slow.json)
"$mural" study "${long[@]}" >out 2>err &
pid=$!
for _ in $(seq 600); do
	[ ! -s c/points/strong-r2-b8-fp32.1/steps.csv ] || break
	sleep 0.1
done
kill -INT $pid
code=0
wait $pid || code=$?
[ $code = 4 ] || fail "Ctrl-C: exit code $code: $(cat out err)"
grep -q '^strong-r1-b8-fp32,1,.*,measured,8,' c/study.csv || fail "Ctrl-C: what was measured is lost: $(cat c/study.csv)"
[ "$(wc -l <c/study.csv)" = 2 ] || fail "Ctrl-C: $(cat c/study.csv)"
"$mural" study "${long[@]}" >out 2>err || fail "after Ctrl-C: $(cat out err)"
grep -q ' 1 measured before, 0 failed' out || fail "after Ctrl-C: $(cat out)"

# wrong usage
for arguments in 'week --folder x' 'strong' 'strong --folder x --ranks 0' 'strong --folder x --ranks 1,' 'strong --folder x --batch 8' \
	'weak --folder x --ranks 20' 'placement --folder x' 'placement --folder x --cluster lab.json --ranks 8' \
	'strong --folder x --hostfile hosts --slurm --mpi=pmix' 'strong --folder x --lr nan' 'strong --folder x --hostfile hosts --ranks 4' 'strong --folder x --steps 2 --epochs 1' 'strong --folder x --fraction 2'; do
	code=0
	# shellcheck disable=SC2086 # words
	study $arguments || code=$?
	[ $code = 2 ] || fail "study $arguments: exit code $code"
	[ "$(grep -c '^mural: ' err)" = 1 ] || fail "study $arguments: $(cat err)"
	[ ! -e x ] || fail "study $arguments left a folder"
done
"$mural" study --help | grep -q accumulation || fail 'no help'
