#!/usr/bin/env bash
# mural plan: its memory is the engine's to the byte, its words and JSON agree, every mistake is one message with its place.
# SPDX-License-Identifier: MIT
set -euo pipefail
mural=$1
clusters=$(cd "$(dirname "$0")" && pwd)/../../examples/clusters
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export TMPDIR=$work MURAL_MODULE_PATH
MURAL_MODULE_PATH=$(dirname "$mural")/../lib/mural
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

fail() {
	echo "$1" >&2
	exit 1
}

# total FILE OBJECT: the number "total" in an object of a JSON file
total() {
	sed -n "/\"$2\": {/,/}/s/^ *\"total\": \([0-9]*\).*/\1/p" "$1"
}

# what a training plans for its rank 0
tiny='--model mu --image-size 16 --patch 8 --channels 1 --classes 4 --threads 1 --data synthetic --synthetic-images 16 --ops cpu'
for ranks in 1 2; do
	[ $ranks = 1 ] || { command -v mpirun >/dev/null && [ -f "$MURAL_MODULE_PATH/mural_comm_mpi.so" ]; } ||
		{ echo 'passed over: two ranks need MPI'; continue; }
	# shellcheck disable=SC2086 # words
	"$mural" train $tiny --batch 8 --ranks $ranks --run-dir run$ranks --max-steps 1 >log 2>&1 || fail "$(cat log)"
	# shellcheck disable=SC2086 # words
	"$mural" plan $tiny --batch 8 --ranks $ranks --result plan$ranks.json >words || fail 'no plan'
	trained=$(total run$ranks/result.json memory_planned_bytes)
	planned=$(total plan$ranks.json memory)
	[ -n "$trained" ] && [ "$trained" = "$planned" ] || fail "$ranks ranks: the engine plans $trained bytes, plan says $planned"
	grep -q "mural plan --calibrate" words || fail 'a guess is not told'
done

run='--model vit_b_16 --micro-batch 16 --batch 128 --ranks 8 --images 50000 --epochs 3'
# shellcheck disable=SC2086 # words
"$mural" plan $run --cluster "$clusters/vector.json" --result plan.json >words || fail 'vector'
for pattern in '^vit_b_16 at 224 x 224, fp32, 16 images x 1 on 8 of 432 devices of .vector.$' '^speeds: as described$' \
	'^  stage 3 .* planned; the engine runs stage 0$' '^a step on 8 devices: ' '^ *432 ' '^the run: 3 epochs of 50000 images .* USD, .* kWh$' \
	'^  efficiency stays at 9[0-9.]* % or above up to all 432 devices$' 'reach 95 % of the best throughput' \
	'^  a 10 Gb/s network: a step on 432 devices takes '; do
	grep -Eq -- "$pattern" words || fail "no line '$pattern' in: $(cat words)"
done
# shellcheck disable=SC2086 # words
"$mural" plan $run --cluster "$clusters/vector.json" --json >out.json || fail 'JSON'
cmp plan.json out.json || fail '--json differs from --result'
[ "$(grep -c '"devices": .*"nodes"' plan.json)" = 10 ] || fail "rows: $(cat plan.json)"

"$mural" plan --model vit_b_16 --micro-batch 16 --batch 80 --ranks 5 --cluster "$clusters/tesla.json" >words || fail 'tesla'
grep -q "^  every reduction waits for the uplink of node 4 ('gtx', 0.12 GB/s)" words || fail "no slow uplink: $(cat words)"
grep -q "^  every step waits for rank 3, a 'p4', which takes 3.15 times as long" words || fail "no slow device: $(cat words)"
grep -q '^  efficiency falls below 80 % at 2 devices' words || fail "no efficiency: $(cat words)"
echo '{ "train_micro_batch_size_per_gpu": 4, "zero_optimization": { "stage": 2 }, "mural": { "model": "vit_ti_16" } }' >zero.json
"$mural" plan zero.json >words || fail 'a stage that is not there yet'
grep -q '^note: ZeRO stage 2 was asked for; the engine runs stage 0' words || fail "no note: $(cat words)"

# expect CODE PATTERN ARGUMENT...
expect() {
	local code=0
	"$mural" plan --model vit_ti_16 --batch 8 "${@:3}" >out 2>words || code=$?
	[ "$code" = "$1" ] || fail "plan ${*:3}: exit code $code, expected $1: $(cat words)"
	tr '\n' ' ' <words | grep -Eq -- "$2" || fail "plan ${*:3}: $(cat words)"
	[ "$(grep -c '^mural: ' words)" = 1 ] || fail "plan ${*:3}: not one message: $(cat words)"
}

# cluster DEVICES LINKS NODES
cluster() {
	printf '{\n"devices": { %s },\n"links": { %s },\n"nodes": [ %s ] }\n' "$1" "$2" "$3" >bad.json
}
t4='"t4": { "seconds_per_image": 1 }' lan='"lan": { "gb_per_s": 1 }'
cluster "$t4" "$lan" '{ "devices": { "t5": 1 } }'
expect 2 'no device "t5"; did you mean "t4".* bad.json:4:27: nodes\[0\].devices.t5' --cluster bad.json
cluster '"abacus": { "watts": 3 }' "$lan" '{ "devices": { "abacus": 1 } }'
expect 2 'nothing tells how fast the device "abacus" is.* bad.json:2: devices.abacus' --cluster bad.json
cluster "$t4" "$lan" '{ "devices": { "t4": 2 } }'
expect 2 '"inside" is missing here.* bad.json:4:12: nodes\[0\]' --cluster bad.json
cluster "$t4" "$lan" '{ "count": 2, "devices": { "t4": 1 }, "uplink": "wan" }'
expect 2 'no link "wan".* bad.json:4:50: nodes\[0\].uplink' --cluster bad.json
cluster "$t4" '"lan": { "gb_per_s": 0 }' '{ "devices": { "t4": 1 } }'
expect 2 'a number above 0, got 0.* bad.json:3:21: links.lan.gb_per_s' --cluster bad.json
cluster '"t4": { "seconds_per_image": 1, "price_per_hour": -1 }' "$lan" '{ "devices": { "t4": 1 } }'
expect 2 'a number of 0 or more, got -1.* devices.t4.price_per_hour' --cluster bad.json
cluster '"t4": { "rates": [ { "s_per_tflop": 1, "ranks": 1.5 } ] }' "$lan" '{ "devices": { "t4": 1 } }'
expect 2 'a whole number from 1 to 65536, got 1.5.* devices.t4.rates\[0\].ranks' --cluster bad.json
cluster "$t4" "$lan" '{ "devices": { "t4": 1 } }'
expect 2 "'cluster' has 1 device, too few for 2 ranks" --cluster bad.json --ranks 2
expect 2 'cluster file' --cluster missing.json
expect 2 'argument --ranks: expected a whole number from 1 to 65536, got 0' --ranks 0
expect 2 'argument --images: expected a whole number from 1 to 4294967295, got -3' --images -3
expect 1 'Not a directory' --cluster bad.json --result /dev/null/nowhere
code=0
"$mural" plan --calibrate --rounds 0 >out 2>words || code=$?
[ $code = 2 ] && grep -q 'argument --rounds: expected a whole number from 1 to 4096, got 0' words || fail "$(cat words)"
code=0
"$mural" plan --calibrate missing.json >out 2>words || code=$?
[ $code = 2 ] && grep -q 'missing.json' words || fail "$(cat words)"
