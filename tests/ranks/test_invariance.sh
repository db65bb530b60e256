#!/usr/bin/env bash
# 1 = 2 = 3 = 4 ranks: the same gradients from the same weights, the same losses; and the same ranks twice give the same bits.
# SPDX-License-Identifier: MIT
set -euo pipefail
program=$1
# shellcheck source=../support/mpi.sh
source "$(dirname "$0")/../support/mpi.sh"
ranks() {
	local n=$1 verb=$2
	shift 2
	mpirun -n "$n" "$bin/programs/invariance" "$verb" "$@"
}

"$bin/programs/invariance" dump "$work" --micro-batch 24 --threads 1
# the same task cut differently: micro-batch x accumulation x ranks = 24
ranks 1 check "$work" --micro-batch 8 --threads 2
ranks 2 check "$work" --micro-batch 12 --threads 1
ranks 2 check "$work" --micro-batch 4 --threads 1 --no-overlap-comm
ranks 3 check "$work" --micro-batch 4 --threads 1
ranks 4 check "$work" --micro-batch 3 --threads 1

ranks 3 losses --micro-batch 8 --threads 1 >"$work/first"
ranks 3 losses --micro-batch 8 --threads 1 >"$work/second"
cmp "$work/first" "$work/second"
ranks 3 losses --micro-batch 8 --threads 1 --no-overlap-comm >"$work/second"
cmp "$work/first" "$work/second"
[ "$(wc -l <"$work/first")" = 200 ]
echo "same ranks, same seed: bit-identical, with overlap and without"
