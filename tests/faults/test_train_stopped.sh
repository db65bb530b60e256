#!/bin/bash
# A training is stopped. Asked to (SIGUSR1, the first Ctrl-C or SIGTERM) it finishes the step and writes a checkpoint: exit code 4. A second
# signal, a closed terminal, nobody who reads, or a crashing rank: one message that names the signal, exit code 1. In any case all
# are gone within seconds, and no temporary folder is left. SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
export TMPDIR=$work
# A sanitizer would catch SIGSEGV and exit; here the signal has to end the rank.
export ASAN_OPTIONS=$ASAN_OPTIONS:handle_segv=0 TSAN_OPTIONS=$TSAN_OPTIONS:handle_segv=0
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

# start RANKS: sets parent and ranks.
start() {
	"$program" train --ranks "$1" --data synthetic --synthetic-images 16 --model mu --image-size 16 --patch 8 --channels 1 \
		--classes 4 --batch 8 --threads 1 --quiet --eval-every 0 --epochs 10000000 --checkpoint-epochs 0 --overwrite \
		--run-dir "$work/run" >"$work/out" 2>"$work/all" &
	parent=$!
	wait_for 60 is_training || { cat "$work/all"; kill -KILL $parent; fail "the training did not start"; }
	ranks=
	[ "$1" = 1 ] || ranks=$(children_of "$(children_of $parent | tr -d ' ')")
}

# finish CODE WHAT: waits for the end; leaves all but the parent's own lines in $work/err.
finish() {
	local code
	wait_for 20 are_gone "$parent" $ranks || { kill -KILL $parent; fail "$2: somebody is still there"; }
	wait $parent
	code=$?
	said "$work/all" | grep -v '^mural: finishing the step' >"$work/err"
	[ $code = "$1" ] || { cat "$work/all"; fail "$2: exit code $code, expected $1"; }
	[ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; fail "$2: more than one message"; }
	[ ! -e "$work/run/result.json" ] && [ ! -e "$work/run/weights.safetensors" ] || fail "files of a run that did not finish"
	! ls -d "$work"/mural-* 2>/dev/null || fail "temporary folders were left"
}

# target NUMBER|parent: its process.
target() {
	[ "$1" = parent ] && echo $parent || echo "$ranks" | cut -d ' ' -f $(($1 + 1))
}

# stop SIGNAL TARGET MESSAGE: at once.
stop() {
	start 2
	kill "-$1" "$(target "$2")"
	finish 1 "$1 to $2"
	expect "$3" "$work/err"
	[ ! -e "$work/run/checkpoints" ] || fail "a checkpoint of a run that was not asked for one"
	rm -r "$work/run"
}

# ask SIGNAL TARGET RANKS: with a checkpoint.
ask() {
	local step set
	start "$3"
	kill "-$1" "$(target "$2")"
	finish 4 "$1 to $2 of $3"
	expect "^mural: stopped after step [0-9]+ of 20000000, with a checkpoint; to go on: --resume $work/run\$" "$work/err"
	step=$(sed -E 's/.*after step ([0-9]+) of.*/\1/' "$work/err")
	set=$work/run/checkpoints/step-$(printf '%08d' "$step")
	[ -e "$set/manifest.json" ] || fail "$1: no checkpoint of step $step"
	[ "$(cat "$work/run/checkpoints/latest")" = "$(basename "$set")" ] || fail "$1: latest names another set"
	[ "$(tail -n 1 "$work/run/steps.csv" | cut -d, -f1)" = "$step" ] || fail "$1: steps.csv ends elsewhere"
	rm -r "$work/run"
}

ask INT parent 2
ask TERM parent 2
ask USR1 parent 2
ask INT parent 1
ask TERM parent 1
ask USR1 parent 1
if [ "$flavour" = openmpi ]; then # others' ranks are no children of mpirun
	ask USR1 1 2
fi

# A second Ctrl-C does not wait for the first one's checkpoint: a rank that stands still keeps everybody.
if [ "$flavour" = openmpi ]; then
	start 2
	kill -STOP "$(target 1)"
	kill -INT $parent
	sleep 1
	kill -0 $parent || fail "the parent did not wait for the step"
	kill -INT $parent
	# mpirun lets the rank go on before it ends it, so the step may just be finished.
	wait_for 20 are_gone "$parent" $ranks || { kill -KILL $parent; fail "INT twice: somebody is still there"; }
	wait $parent
	code=$?
	[ $code = 1 ] || [ $code = 4 ] || { cat "$work/all"; fail "INT twice: exit code $code, expected 1"; }
	[ $code = 4 ] || expect '^mural: stopped by signal 2 \(Interrupt\)$' "$work/all"
	rm -r "$work/run"
fi

stop HUP parent '^mural: stopped by signal 1 \(Hangup\)$'
stop QUIT parent '^mural: stopped by signal 3 \(Quit\)$'
stop PIPE parent '^mural: stopped by signal 13 \(Broken pipe\)$'
if [ "$flavour" = openmpi ]; then
	stop SEGV 1 '^mural: rank 1 of 2 \(node .*\) was killed by signal 11 \(Segmentation fault\)$'
	stop KILL 0 '^mural: rank 0 of 2 \(node .*\) was killed by signal 9 \(Killed\)'
fi
exit 0
