#!/usr/bin/env bash
# Shares that move: a slow rank is given less within a few steps, the log tells why, and a run with the log's shares has the same bits.
# SPDX-License-Identifier: MIT
set -euo pipefail
program=$1
# shellcheck source=../support/mpi.sh
source "$(dirname "$0")/../support/mpi.sh"
task=(--model mu --image-size 16 --patch 4 --channels 1 --classes 10 --width 16 --heads 2 --mlp-width 32 --depth 1
	--data synthetic --synthetic-images 100 --flip 0.5 --dropout 0.1 --lr 1e-3 --threads 1 --checkpoint-epochs 0
	--eval-every 0 --no-progress)
train() {
	local ranks=$1 folder=$2
	shift 2
	mpirun -n "$ranks" "$program" train "${task[@]}" --run-dir "$work/$folder" "$@" &>"$work/$folder.out" ||
		{ cat "$work/$folder.out" && fail "$folder did not end well"; }
}
losses() { cut -d, -f1-6 "$work/$1/steps.csv"; } # all that is no time
refuse() {
	local ranks=$1 pattern=$2
	shift 2
	local code=0
	mpirun -n "$ranks" "$program" train "${task[@]}" --run-dir "$work/refused" "$@" &>"$work/out" || code=$?
	[ "$code" = 2 ] || fail "expected exit code 2, got $code: $(cat "$work/out")"
	expect "$pattern" "$work/out"
}

# a log by hand: shares change in the middle of epochs (13 steps, the last one short), a rank has none, a run went on from step 20
cat >"$work/log.csv" <<'CSV'
step,from_step,shares,seconds_before,seconds_expected,own_seconds,waited_seconds,reason
0,1,4 4,,,,,begins
4,5,8 0,,,,,x
10,13,1 7,,,,,"x, y"
15,16,1 7,,,,,stay
20,23,8 0,,,,,never came
20,21,3 5,,,,,goes on
CSV
train 2 equal --batch 8 --epochs 3
train 2 first --batch 8 --epochs 3 --balance "replay:$work/log.csv" --micro-batch 3
train 2 second --batch 8 --epochs 3 --balance "replay:$work/first/balance.csv" --micro-batch 3 --loader-threads 3 --prefetch 9
diff <(losses first) <(losses second) || fail "a replay of a replay has other bits"
diff <(cut -d, -f2,3 "$work/first/balance.csv") <(cut -d, -f2,3 "$work/second/balance.csv") || fail "other decisions"
[ "$(cut -d, -f2,3 "$work/first/balance.csv" | tail -n +2 | tr '\n' ';')" = "1,4 4;5,8 0;13,1 7;21,3 5;" ] ||
	fail "not the log's shares: $(cat "$work/first/balance.csv")"
same_training() {
	paste -d, <(losses "$1") <(losses "$2") | awk -F, '
		NR > 1 { n++; off = ($3 - $9) / $3; if (off < 0) off = -off; if (off > 1e-5 || $6 != $12) bad = 1 }
		END { exit bad || n != 39 }' || fail "$1 and $2 are not the same training"
}
same_training equal first

# a rank is left out of the reductions from step 9 on: the batch stays as it is, evaluations, checkpoints and the end go on without it
cat >"$work/out.csv" <<'CSV'
step,from_step,shares,seconds_before,seconds_expected,own_seconds,waited_seconds,reason
0,1,3 2 3,,,,,begins
4,9,4 - 4,,,,,left out
16,19,7 - 1,,,,,x
CSV
tested() { awk -F'[:,]' '/"test_loss"/ { print $2 + 0; exit }' "$work/$1/result.json"; }
train 3 without --batch 8 --epochs 3 --balance "replay:$work/out.csv" --eval-every 1 --checkpoint-epochs 1 --val 0.2 \
	--comms-logger --synthetic-images 125
expect '1,3 2 3;9,4 - 4;19,7 - 1;' <(cut -d, -f2,3 "$work/without/balance.csv" | tail -n +2 | tr '\n' ';')
train 2 with --batch 8 --epochs 3 --eval-every 1 --checkpoint-epochs 1 --val 0.2 --synthetic-images 125
same_training with without
[ "$(printf '%.4f' "$(tested with)")" = "$(printf '%.4f' "$(tested without)")" ] ||
	fail "another test loss without a rank: $(tested without) and $(tested with)"
grep -q '"share": 0, "reduces": false' "$work/without/result.json" || fail "the result does not tell who was left out"
mpirun -n 3 "$program" train "${task[@]}" --run-dir "$work/without" --resume auto --batch 8 --balance auto --epochs 4 \
	--synthetic-images 125 --val 0.2 &>"$work/out" || fail "what a team without a rank left does not go on: $(cat "$work/out")"
printf '%s\n' 'step,from_step,shares,reason' '0,1,4 - 4,begins' >"$work/never.csv" # out from the first step on: its log of collectives is another one
train 3 never --batch 8 --max-steps 9 --balance "replay:$work/never.csv" --comms-logger
expect '^all_reduce +12.5 KiB +9 ' "$work/never.out"
printf '%s\n' '30,31,3 2 3,,,,,goes on' >>"$work/out.csv"
refuse 3 'leave rank 1 out and take it in again from step 31 on' --batch 8 --epochs 3 --balance "replay:$work/out.csv"

refuse 2 'expected the shares of 2 ranks, 12 images together, got .4 4' --batch 12 --balance "replay:$work/log.csv"
refuse 4 'log.csv:2' --batch 8 --balance "replay:$work/log.csv"
refuse 2 'the shares to replay cannot be read' --batch 8 --balance "replay:$work/no.csv"

# two ranks of which one is three times as slow, as emulated devices: measured, decided on, logged, replayed
cat >"$work/lab.json" <<'JSON'
{ "name": "lab",
  "devices": { "fast": { "seconds_per_image": 0.05 }, "slow": { "seconds_per_image": 0.15 } },
  "links": { "lan": { "gb_per_s": 1 } },
  "nodes": [ { "devices": { "fast": 1 }, "uplink": "lan" }, { "devices": { "slow": 1 }, "uplink": "lan" } ] }
JSON
train 2 auto --batch 8 --balance auto --max-steps 16 --cluster "$work/lab.json" --steps-per-print 1
grep -Eq 'step 5/13 .* left  waits 0\.4[0-9]* s of 0\.6[0-9]* s per step for rank 1 \(' "$work/auto.out" ||
	fail "nobody tells who waits for whom: $(cat "$work/auto.out")"
expect 'from step 7: shares 4 4 become 6 2' "$work/auto.out"
grep -q '^4,7,6 2,0\.6.*shares 4 4 become 6 2: a step of 0\.3' "$work/auto/balance.csv" || fail "$(cat "$work/auto/balance.csv")"
expect '"meetings": ' "$work/auto/result.json"
grep -q '"share": 6, ' "$work/auto/result.json" || fail "no shares in the result"
train 2 again --batch 8 --balance "replay:$work/auto/balance.csv" --max-steps 16
diff <(losses auto) <(losses again) || fail "the replay of a log has other bits"
echo "shares move, and replay"
