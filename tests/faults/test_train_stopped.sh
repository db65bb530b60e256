#!/bin/bash
# A training is stopped: Ctrl-C, SIGTERM, a closed terminal, nobody who reads; or a rank crashes. All gone within seconds, one
# message that names the signal, exit code 1, no temporary folder. SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
export TMPDIR=$work
set -m # background jobs do not ignore SIGINT then

children_of() {
	cat "/proc/$1/task/$1/children" 2>/dev/null
}
is_training() {
	[ -f "$work/run/steps.csv" ] && [ "$(wc -l <"$work/run/steps.csv")" -gt 3 ]
}
are_gone() {
	local pid
	for pid; do
		! kill -0 "$pid" 2>/dev/null || return 1
	done
}

# stop SIGNAL TARGET MESSAGE: SIGNAL to the parent, or to a rank by its number.
stop() {
	local parent pid ranks code
	"$program" train --ranks 2 --data synthetic --synthetic-images 16 --model mu --image-size 16 --patch 8 --channels 1 \
		--classes 4 --batch 8 --threads 1 --quiet --eval-every 0 --epochs 10000000 --overwrite --run-dir "$work/run" \
		>"$work/out" 2>"$work/all" &
	parent=$!
	wait_for 60 is_training || { cat "$work/all"; kill -KILL $parent; fail "the training did not start"; }
	ranks=$(children_of "$(children_of $parent | tr -d ' ')")
	pid=$parent
	[ "$2" = parent ] || pid=$(echo "$ranks" | cut -d ' ' -f $(($2 + 1)))
	kill "-$1" "$pid"
	wait_for 10 are_gone "$parent" $ranks || { kill -KILL $parent; fail "$1 to $2: somebody is still there"; }
	wait $parent
	code=$?
	grep -v '^mural: starting' "$work/all" >"$work/err"
	[ $code = 1 ] || { cat "$work/all"; fail "$1 to $2: exit code $code, expected 1"; }
	expect "$3" "$work/err"
	[ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; fail "$1 to $2: more than one message"; }
	[ ! -e "$work/run/result.json" ] && [ ! -e "$work/run/weights.safetensors" ] || fail "files of a run that did not finish"
	! ls -d "$work"/mural-* 2>/dev/null || fail "temporary folders were left"
	rm -r "$work/run"
}

stop INT parent '^mural: stopped by signal 2 \(Interrupt\)$'
stop TERM parent '^mural: stopped by signal 15 \(Terminated\)$'
stop HUP parent '^mural: stopped by signal 1 \(Hangup\)$'
stop QUIT parent '^mural: stopped by signal 3 \(Quit\)$'
stop PIPE parent '^mural: stopped by signal 13 \(Broken pipe\)$'
if [ "$flavour" = openmpi ]; then # others' ranks are no children of mpirun
	stop SEGV 1 '^mural: rank 1 of 2 \(node .*\) was killed by signal 11 \(Segmentation fault\)$'
	stop KILL 0 '^mural: rank 0 of 2 \(node .*\) was killed by signal 9 \(Killed\)'
fi
exit 0
