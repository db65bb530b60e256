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
