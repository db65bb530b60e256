#!/bin/bash
# --ranks N: the ranks run, their words pass through, and the parent says what it starts. SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
probe=$bin/programs/launch_probe
export TMPDIR=$work

for ranks in 1 2 4; do
	timeout 60 "$probe" --ranks $ranks sum >"$work/out" 2>"$work/err" || { cat "$work/err"; fail "$ranks ranks"; }
	expect "^sum $((ranks * (ranks + 1) / 2)) of $ranks ranks$" "$work/out"
	expect "^mural: starting $ranks ranks: " "$work/err" $((ranks > 1))
	[ "$(wc -l <"$work/err")" = $((ranks > 1)) ] || { cat "$work/err"; fail "more words than the parent's line"; }
done
if [ "$flavour" = openmpi ]; then
	[ "$(id -u)" != 0 ] || expect 'allow-run-as-root.*you are root' "$work/err"
	[ "$(nproc)" -ge 4 ] || expect 'oversubscribe.*4 ranks on' "$work/err"
fi

# Lines of all ranks arrive, and so does a progress bar that has not ended its line.
timeout 60 "$probe" --ranks 3 talk 2>"$work/err" || fail "talk"
for rank in 0 1 2; do
	expect "rank $rank speaks" "$work/err"
done
expect '40 %' "$work/err"
expect '100 %' "$work/err"

# What comes next does not stand behind a bar that was left open.
timeout 60 "$probe" --ranks 2 unfinished 2>"$work/err" || fail "unfinished"
expect '40 %$' "$work/err"
[ -z "$(tail -c 1 "$work/err")" ] || fail "the last line is not ended"

# Started by mpirun directly, the parent is not needed.
mpirun -n 3 "$probe" sum >"$work/out" 2>"$work/err" || { cat "$work/err"; fail "mpirun -n 3"; }
expect '^sum 6 of 3 ranks$' "$work/out"

ls -d "$work"/mural-* 2>/dev/null && fail "temporary folders were left"
exit 0
