#!/usr/bin/env bash
# bf16 trains like fp32, on one rank and on several, with sums of bf16 or of fp32 between them; the same ranks twice give the
# same bits. SPDX-License-Identifier: MIT
set -euo pipefail
program=$1
# shellcheck source=../support/mpi.sh
source "$(dirname "$0")/../support/mpi.sh"
invariance=$bin/programs/invariance

"$invariance" note "$work" --micro-batch 24 --threads 1
"$invariance" near "$work" --micro-batch 24 --threads 1 --bf16
echo '"communication_data_type": "fp32", "data_types": { "grad_accum_dtype": "fp32" }' >"$work/wide.json"
mpirun -n 2 "$invariance" near "$work" --micro-batch 4 --threads 1 --bf16
mpirun -n 3 "$invariance" near "$work" --micro-batch 8 --threads 1 --bf16 --config "$work/wide.json"
echo '"communication_data_type": "fp32"' >"$work/wire.json"
mpirun -n 2 "$invariance" near "$work" --micro-batch 12 --threads 1 --bf16 --config "$work/wire.json"

mpirun -n 2 "$invariance" losses --micro-batch 12 --threads 1 --bf16 >"$work/first"
mpirun -n 2 "$invariance" losses --micro-batch 12 --threads 1 --bf16 --no-overlap-comm >"$work/second"
cmp "$work/first" "$work/second"
[ "$(wc -l <"$work/first")" = 200 ]
echo "same ranks, same seed: bit-identical in bf16, with overlap and without"

# A sum over two ranks that overflows fp16, and does not when each rank divides more before it: same gradient, other range.
run() {
	"$program" train --model mu --image-size 16 --patch 4 --channels 1 --classes 10 --width 32 --heads 2 --mlp-width 64 --depth 2 \
		--data synthetic --synthetic-images 96 --batch 16 --threads 1 --ranks 2 --seed 5 --max-steps 4 --eval-every 0 \
		--quiet --config "$work/$1.json" --run-dir "$work/$1" >"$work/out" 2>&1 || { cat "$work/out"; fail "$1"; }
}
column() { awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR > 1 { print $at }' "$work/$1/steps.csv"; }
echo '"fp16": { "enabled": true, "loss_scale": 4194304 }' >"$work/sums.json"
echo '"fp16": { "enabled": true, "loss_scale": 4194304 }, "gradient_predivide_factor": 16384' >"$work/divided.json"
echo '"fp16": { "enabled": true, "loss_scale": 512 }, "prescale_gradients": true' >"$work/small.json"
run sums
run divided
run small
[ "$(column sums skipped_steps | tail -1)" = 4 ] || fail "the sums did not overflow"
[ "$(column sums applied_steps | tail -1)" = 0 ] || fail "steps that were left out count as applied"
[ "$(column divided skipped_steps | tail -1)" = 0 ] || fail "the divided sums overflowed"
# 2 ranks: a factor of 16384 divides by 8192 times the two ranks, as a scale that is 8192 times smaller
diff <(cut -d, -f1-6 "$work/divided/steps.csv") <(cut -d, -f1-6 "$work/small/steps.csv") || fail "the factor changed the result"
expect '"applied_steps": 4,' "$work/divided/result.json"
expect '"skipped_steps": 4,' "$work/sums/result.json"
expect '"loss_scale": 4194304,' "$work/sums/result.json"
