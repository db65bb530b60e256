#!/bin/bash
# Every collective on 1 to 4 ranks over MPI, whole and cut into many short calls. SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"

# Under mpirun -n 1 the table "auto" would be self.
for ranks in 1 2 3 4; do
	for bytes in 0 20011; do
		MURAL_TEST_COMM=$flavour MURAL_MPI_CALL_BYTES=$bytes timeout 400 \
			mpirun -n $ranks "$bin/ranks_test_collectives" >"$work/out" 2>&1 ||
			{ cat "$work/out"; fail "$ranks ranks, calls of at most $bytes bytes (0: the default)"; }
		expect 'PASSED.* 13 test' "$work/out" $ranks
	done
done

for ranks in 1 3; do
	MURAL_TEST_COMM=$flavour MURAL_TEST_EMULATED=1 timeout 400 \
		mpirun -n $ranks "$bin/ranks_test_collectives" >"$work/out" 2>&1 ||
		{ cat "$work/out"; fail "$ranks ranks, emulated links"; }
	expect 'PASSED.* 13 test' "$work/out" $ranks
done
