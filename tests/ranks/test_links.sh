#!/bin/bash
# Two hosts joined by a slow wire, which no file describes: `auto` looks at the links, finds this one and says so; with balance_remove
# the rank behind it is left out, and the batch goes on with the first. Few
# images, so that the wire matters under a sanitizer as well. SPDX-License-Identifier: MIT
program=$1
self=$0
. "$(dirname "$0")/../support/namespaces.sh"
. "$(dirname "$0")/../support/mpi.sh" 2>/dev/null # mpirun complains of a machine without a network
command -v tc >/dev/null || { echo "skipped: no tc (Debian, Ubuntu: apt install iproute2)"; exit 77; }
# MPICH's UCX sees through the namespaces and shares memory.
[ "$flavour" = openmpi ] || { echo "skipped: this MPI does not use the wire between namespaces"; exit 77; }
make_hosts
cd "$work" || exit 1
unset CUDA_VISIBLE_DEVICES # it would be told of
printf '10.77.5.1 slots=1\n10.77.5.2 slots=1\n' >hosts
task=(train --data synthetic --synthetic-images 400 --model mu --image-size 16 --patch 4 --channels 1 --classes 4 --width 64 --heads 2
	--mlp-width 256 --depth 3 --batch 8 --threads 1 --eval-every 0 --checkpoint-epochs 0 --no-progress --hostfile hosts
	--balance auto --max-steps 20)
train() { # FOLDER OPTION...
	local folder=$1
	shift
	timeout 120 "$program" "${task[@]}" --run-dir "$folder" "$@" >"$folder.out" 2>&1 || { cat "$folder.out"; fail "$folder"; }
}
slow() { tc qdisc add dev mural-a root tbf rate 20mbit burst 32kbit latency 400ms && on_b tc qdisc add dev mural-b root tbf rate 20mbit burst 32kbit latency 400ms; }

slow 2>/dev/null || { echo "skipped: the kernel has no token bucket for the wire"; exit 77; }
train proposed
grep -q 'rank 1 (host host-b) costs more than it brings: its link makes the reduction' proposed/result.json ||
	{ cat proposed.out proposed/balance.csv; fail "the link is not blamed"; }
train removed --balance-remove
[ "$(tail -n 1 removed/balance.csv | cut -d, -f3)" = "8 -" ] || { cat removed/balance.csv; fail "nobody was left out"; }
grep -q '1 left out: a step of ' removed/balance.csv || fail "no reason"
exit 0
