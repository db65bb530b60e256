#!/usr/bin/env bash
# 1 = 2 = 3 = 4 ranks: the same gradients from the same weights, the same losses; and the same ranks twice give the same bits.
# SPDX-License-Identifier: MIT
set -euo pipefail
bin=$(cd "$(dirname "$1")" && pwd)
program=$bin/programs/invariance
command -v mpirun >/dev/null || { echo "skipped: no mpirun"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1
ranks() { mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$@"; }

"$program" dump "$work" --micro-batch 24 --threads 1
# the same task cut differently: micro-batch x accumulation x ranks = 24
ranks 1 "$program" check "$work" --micro-batch 8 --threads 2
ranks 2 "$program" check "$work" --micro-batch 12 --threads 1
ranks 2 "$program" check "$work" --micro-batch 4 --threads 1 --no-overlap-comm
ranks 3 "$program" check "$work" --micro-batch 4 --threads 1
ranks 4 "$program" check "$work" --micro-batch 3 --threads 1

ranks 3 "$program" losses --micro-batch 8 --threads 1 >"$work/first"
ranks 3 "$program" losses --micro-batch 8 --threads 1 >"$work/second"
cmp "$work/first" "$work/second"
ranks 3 "$program" losses --micro-batch 8 --threads 1 --no-overlap-comm >"$work/second"
cmp "$work/first" "$work/second"
[ "$(wc -l <"$work/first")" = 200 ]
echo "same ranks, same seed: bit-identical, with overlap and without"
