#!/usr/bin/env bash
# Unequal shares of a batch: the same gradients from the same weights, the same losses, the same evaluation; and a run goes on from
# its checkpoint with other shares and other ranks.
# SPDX-License-Identifier: MIT
set -euo pipefail
program=$1
# shellcheck source=../support/mpi.sh
source "$(dirname "$0")/../support/mpi.sh"
check() {
	local n=$1
	shift
	mpirun -n "$n" "$bin/programs/invariance" check "$work" --threads 1 "$@"
}

# dropout of all kinds, drop path, crops and flips, a short last batch of 4 of 24, 40 epochs; accumulation where micro-batches are small
"$bin/programs/invariance" dump "$work" --micro-batch 24 --threads 1
check 2 --balance 20,4
check 2 --balance 0,24 --micro-batch 5
check 3 --balance 12,8,4 --micro-batch 3 --no-overlap-comm

task=(--model mu --image-size 16 --patch 4 --channels 1 --classes 10 --width 32 --heads 2 --mlp-width 64 --depth 2
	--data synthetic --synthetic-images 100 --flip 0.5 --dropout 0.1 --lr 1e-3 --batch 12 --epochs 3 --threads 1
	--checkpoint-epochs 0 --no-progress)
mpirun -n 2 "$program" train "${task[@]}" --run-dir "$work/whole" --balance 9,3 &>"$work/out"
expect "batch 12 \(shares 9, 3\)" "$work/out"
mpirun -n 2 "$program" train "${task[@]}" --run-dir "$work/parts" --balance 2,10 --checkpoint-every 5 --max-steps 13 &>"$work/out"
mpirun -n 3 "$program" train "${task[@]}" --run-dir "$work/parts" --balance 5,0,7 --micro-batch 2 --resume auto &>"$work/out"
expect "going on after step 13" "$work/out"
# near FILE FILE COLUMN WITHIN: as many rows, and each number as near, relatively.
near() {
	paste -d, "$1" "$2" | awk -F, -v column="$3" -v within="$4" '
		NR == 1 { half = NF / 2; for (i = 1; i <= half; i++) if ($i == column) at = i; next }
		NF != 2 * half { exit bad = 1 }
		{ off = ($at - $(at + half)) / $at; if (off < 0) off = -off; if (off > worst) worst = off }
		END { printf "%d rows: %s within %g\n", NR - 1, column, worst; exit bad || !at || worst > within }'
}
near "$work/whole/steps.csv" "$work/parts/steps.csv" loss 1e-5 || fail "another loss in a run of two parts with other shares"
near "$work/whole/steps.csv" "$work/parts/steps.csv" images 0 || fail "another number of images"
[ "$(wc -l <"$work/parts/steps.csv")" = 28 ] || fail "not 27 steps"
tested() { awk -F'[:,]' '/"test_loss"/ { print "test_loss"; print $2 + 0; exit }' "$1/result.json"; }
tested "$work/whole" >"$work/a"
tested "$work/parts" >"$work/b"
near "$work/a" "$work/b" test_loss 1e-4 || fail "another test loss"
echo "unequal shares: the same run"
