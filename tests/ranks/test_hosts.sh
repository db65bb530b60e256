#!/bin/bash
# --hostfile: ranks on two hosts of two namespaces train as on one, sit where the file says, get their environment, end well; and
# hosts that cannot work are told of before anything starts. SPDX-License-Identifier: MIT
program=$1
self=$0
. "$(dirname "$0")/../support/namespaces.sh"
. "$(dirname "$0")/../support/mpi.sh" 2>/dev/null # mpirun complains of a machine without a network
make_hosts
probe=$bin/programs/launch_probe
mkdir "$work/own" "$work/only-here" "$work/tmp"
cp -r "$bin/../lib/mural" "$work/modules"
cd "$work" || exit 1
unset CUDA_VISIBLE_DEVICES # it would be told of
export TMPDIR=$work/tmp MURAL_MODULE_PATH=$work/modules
hide_on_b "$work/tmp" # the parent's folder for messages is not there, as on another machine
hide_on_b "$work/only-here"
printf '# the team\n10.77.5.1 slots=2\n\n10.77.5.2 slots=4 # has more\n' >hosts
task="--data synthetic --synthetic-images 96 --model mu --image-size 16 --patch 8 --channels 1 --classes 4 --batch 24"
task="$task --threads 1 --seed 7 --eval-every 0"

# run CODE COMMAND...: words in $work/out and, without the parent's announcement, $work/err.
run() {
	local wanted=$1 code
	shift
	timeout 100 "$@" >"$work/out" 2>"$work/all"
	code=$?
	said "$work/all" >"$work/err"
	[ $code = "$wanted" ] || { cat "$work/out" "$work/all"; fail "$*: exit code $code, expected $wanted"; }
}
losses() {
	cut -d , -f 1-3,5 "$1/steps.csv"
}
nothing_started() {
	! grep -q '^mural: starting' "$work/all" || fail "something was started"
	[ ! -e run ] || fail "a run folder was made"
}

# Two hosts are as good as one, to the bit; and it is the wire that carries it.
run 0 "$program" train $task --epochs 5 --run-dir one --ranks 4
before=$(bytes_sent)
run 0 "$program" train $task --epochs 5 --run-dir two --hostfile hosts --exclude 10.77.5.2:1,3
expect '^mural: starting 4 ranks on 2 hosts: ' "$work/all"
cmp <(losses one) <(losses two) || fail "losses on two hosts differ"
cmp one/weights.safetensors two/weights.safetensors || fail "weights from two hosts differ"
sent=$(($(bytes_sent) - before))
# (MPICH's UCX sees through the namespaces and shares memory.)
[ "$flavour" = mpich ] || [ $sent -gt 1000000 ] || fail "only $sent bytes went over the wire"

# A study's points: packed on one host, and one rank on each.
before=$(bytes_sent)
run 0 "$program" study placement --folder study --hostfile hosts --ranks 2 --batches 8 --rounds 1 --steps 20 --warm-up 2 \
	${task/--batch 24/} --synthetic-images 500 --placements pack
packed=$(($(bytes_sent) - before))
run 0 "$program" study placement --folder study --hostfile hosts --ranks 2 --batches 8 --rounds 1 --steps 20 --warm-up 2 \
	${task/--batch 24/} --synthetic-images 500
sent=$(($(bytes_sent) - before - packed))
expect '^10.77.5.1:0,1$' study/points/placement-r2-b8-fp32-pack.1/command.txt
expect '^10.77.5.1:0@10.77.5.2:0$' study/points/placement-r2-b8-fp32-spread.1/command.txt
expect 'inter-node' study/epochs.csv
expect '1 measured before, 0 failed' "$work/out"
[ "$flavour" = mpich ] || [ $sent -gt $((packed + 100000)) ] || fail "spread ranks sent $sent bytes, packed ones $packed"

# Who sits where.
run 0 "$program" info --hostfile hosts --include 10.77.5.2:3,1@10.77.5.1 --result seats.json
expect '^ +0 +host-a .* 0  [^ ]' "$work/out"
expect '^ +1 +host-a .* 1  [^ ]' "$work/out"
expect '^ +2 +host-b .* 1  [^ ]' "$work/out"
expect '^ +3 +host-b .* 3  [^ ]' "$work/out"
expect '"host": "host-b"' seats.json 2

# The environment: what begins so, and DeepSpeed's file; a person's other variables stay at home.
printf '# of the network\nNCCL_PROBE=from=file\n' >.deepspeed_env
run 0 env OMP_PROBE=shell "$probe" --hostfile hosts env OMP_PROBE
expect '^rank [0-5] of 6 on host-[ab], slot [0-3]: shell$' "$work/out" 6
run 0 "$probe" --hostfile hosts env NCCL_PROBE
expect '^rank 5 of 6 on host-b, slot 3: from=file$' "$work/out"
if [ "$flavour" = openmpi ]; then
	run 0 env PRIVATE=1 "$probe" --hostfile hosts env PRIVATE
	expect '^rank [2-5] of 6 on host-b, .*: not set$' "$work/out" 4
fi
printf 'no equal sign: hush\n' >.deepspeed_env
run 2 "$program" train $task --run-dir run --hostfile hosts --epochs 1
expect '^       .deepspeed_env:1$' "$work/err"
expect hush "$work/err" 0
nothing_started
rm .deepspeed_env

# A rank of the other host that fails alone leaves its words with the parent.
run 1 "$probe" --hostfile hosts alone 4
expect '^mural: rank 4 of 6: the disk is full$' "$work/err"
[ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; fail "more than one message"; }
run 3 "$probe" --hostfile hosts fail 2
expect '^mural: rank 2 of 6: label 102 is out of range$' "$work/err"
[ "$(wc -l <"$work/err")" = 2 ] || { cat "$work/err"; fail "more than one message"; }

# One that is killed there: all are gone.
echo "PROBE_DIR=$work/own" >.deepspeed_env
"$probe" --hostfile hosts loop >"$work/out" 2>"$work/all" &
parent=$!
has_begun() {
	[ "$(ls "$work/own" | wc -l)" = 6 ]
}
wait_for 60 has_begun || { cat "$work/all"; fail "the ranks did not begin"; }
kill -KILL "$(cat "$work/own/pid-5")"
are_gone() {
	local pids
	pids=$(cat "$work"/own/pid-*)
	! kill -0 $parent $pids 2>/dev/null
}
wait_for 20 are_gone || fail "somebody is still there"
wait $parent
[ $? = 1 ] || fail "wrong exit code"
# (Open MPI 5 reports whichever rank noticed first that a socket was closed, MPICH nobody.)
! mpirun --version | grep -q ' 4\.' || expect '^mural: rank 5 of 6 .*was killed by signal 9' "$work/all"

rm .deepspeed_env

# Asked to stop, all come to a good end.
"$program" train $task --epochs 10000000 --checkpoint-epochs 0 --checkpoint-every 1000000 --quiet --run-dir stop --hostfile hosts \
	--ranks 3 >"$work/out" 2>"$work/all" &
parent=$!
is_training() {
	[ -f stop/steps.csv ] && [ "$(wc -l <stop/steps.csv)" -gt 3 ]
}
wait_for 60 is_training || { cat "$work/all"; fail "it does not train"; }
kill -USR1 $parent
wait $parent
[ $? = 4 ] || { cat "$work/all"; fail "SIGUSR1: wrong exit code"; }
[ -f stop/checkpoints/latest ] || fail "no checkpoint"

# Hosts that cannot work. Nothing starts.
printf '10.77.5.1 slots=1\n10.77.5.9 slots=1\n10.77.5.8 slots=2\n' >far
run 1 "$program" train $task --run-dir run --hostfile far --epochs 1
expect '^mural: host "10.77.5.9" cannot be reached: `[^ ]*/agent 10.77.5.9` says: no route to 10.77.5.9$' "$work/err"
expect '^       far:2$' "$work/err"
expect '^       nor will it work on 10.77.5.8 \(line 3\)$' "$work/err"
nothing_started
mkdir only-here/deeper
cd only-here/deeper || exit 1
run 2 "$program" train $task --run-dir run --hostfile ../../hosts --epochs 1
expect "^mural: host \"10.77.5.2\" has no folder $work/only-here/deeper, where this was started$" "$work/err"
expect '^       ../../hosts:4$' "$work/err"
nothing_started
cd "$work" || exit 1
mkdir only-here/bin
cp "$program" only-here/bin/mural
cp -r "$bin"/../lib "$work/only-here/"
run 2 "$work/only-here/bin/mural" train $task --run-dir run --hostfile hosts --epochs 1
expect "^mural: host \"10.77.5.2\" has no program $work/only-here/bin/mural: " "$work/err"
nothing_started
on_b mkdir "$work/only-here/bin"
printf '#!/bin/sh\necho mural 0.0.1\n' >imitation
on_b cp "$work/imitation" "$work/only-here/bin/mural"
on_b chmod +x "$work/only-here/bin/mural"
run 2 "$work/only-here/bin/mural" train $task --run-dir run --hostfile hosts --epochs 1
expect '^mural: host "10.77.5.2" has another Mural: this one is [0-9.]+, that one says "mural 0.0.1"$' "$work/err"
nothing_started

ls -d "$work"/tmp/mural-* 2>/dev/null && fail "temporary folders were left"
exit 0
