#!/usr/bin/env bash
# Benchmarks on this machine's CPU; prints tables for docs/benchmarks.md.
#
#   bench/run.sh peer      ViT-S/16 at 224, batch 16, fp32: Mural and PyTorch eager (timm), alternating pairs
#   bench/run.sh scaling   two ranks x one thread against one rank x one thread with the other core loaded alike
#   bench/run.sh ops       each operation against its floor
#   bench/run.sh checkpoint [FOLDER]   ViT-L/16: a set against the same bytes written plainly, and how much it holds the training up
#   bench/run.sh comm      all-reduces: alone, under arithmetic, and what of the arithmetic they cost; on 2 ranks and a rank per core
#   bench/run.sh           all of them
#
# PyTorch is no dependency: set MURAL_PEER_PYTHON to an interpreter that has torch and timm, or the peer is left out, said aloud.
# PAIRS (default 5) and STEPS (default 6) set the length. SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${MURAL_BUILD:-build/release}/bin
pairs=${PAIRS:-5}
steps=${STEPS:-6}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A forced OpenBLAS kernel would slow the peer.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE

median() { sort -g | awk '{v[NR] = $1} END {print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

# Median seconds per step of a Mural run, the first two steps left out: mural_step NAME RANKS THREADS BATCH MICRO
mural_step() {
	local dir=$work/$1
	${pin:-} "$bin/mural" train --quiet --ranks "$2" --threads "$3" --batch "$4" --micro-batch "$5" --model vit_s_16 --classes 1000 \
		--data synthetic --synthetic-images $((($steps + 2) * $4)) --max-steps $((steps + 2)) --eval-every 0 --run-dir "$dir" \
		--lr 1e-4 --overwrite >"$dir.log" 2>&1 || { cat "$dir.log" >&2; exit 1; }
	# seconds = data + forward + backward + exposed communication + optimizer
	awk -F, 'NR > 3 {print $7 + $8 + $9 + $10 + $12}' "$dir/steps.csv" | median
}

machine() {
	echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores; date: $(date +%F); load before: $(cut -d' ' -f1 /proc/loadavg)"
}

run_peer() {
	local python=${MURAL_PEER_PYTHON:-python3} batch=16 threads
	threads=$(nproc)
	[ "$threads" -gt 2 ] && threads=2
	echo "== ViT-S/16, 224, batch $batch, fp32, $threads threads, $pairs alternating pairs of $steps steps"
	if ! "$python" -c 'import torch, timm' 2>/dev/null; then
		echo "peer left out: $python has no torch and timm (set MURAL_PEER_PYTHON)"
		python=
	fi
	: >"$work/ratios"
	for pair in $(seq "$pairs"); do
		local ours theirs
		ours=$(mural_step peer 1 "$threads" "$batch" "$batch")
		if [ -n "$python" ]; then
			theirs=$("$python" bench/peer_step.py --batch "$batch" --threads "$threads" --steps "$steps")
			awk -v a="$theirs" -v b="$ours" 'BEGIN {print a / b}' >>"$work/ratios"
			awk -v p="$pair" -v a="$ours" -v b="$theirs" -v n="$batch" \
				'BEGIN {printf "pair %d: Mural %.2f images/s, PyTorch %.2f images/s, ratio %.3f\n", p, n / a, n / b, b / a}'
		else
			awk -v p="$pair" -v a="$ours" -v n="$batch" 'BEGIN {printf "run %d: Mural %.2f images/s\n", p, n / a}'
		fi
	done
	[ -s "$work/ratios" ] && echo "median ratio: $(median <"$work/ratios") (target: at least 1)"
	return 0
}

run_scaling() {
	echo "== ViT-S/16, 224, global batch 64, fp32: 2 ranks x 1 thread against 1 rank x 1 thread, the other core loaded alike"
	: >"$work/ratios"
	for pair in $(seq "$pairs"); do
		local one two
		pin="taskset -c 1" mural_step other 1 1 64 16 >"$work/other.out" &
		one=$(pin="taskset -c 0" mural_step one 1 1 64 16)
		wait
		two=$(mural_step two 2 1 64 16)
		awk -v a="$one" -v b="$two" 'BEGIN {print a / b}' >>"$work/ratios"
		awk -v p="$pair" -v a="$one" -v b="$two" 'BEGIN {printf "pair %d: one rank %.2f images/s, two ranks %.2f images/s, speed-up %.3f\n", p, 64 / a, 64 / b, a / b}'
	done
	echo "median speed-up: $(median <"$work/ratios") (target: at least 1.85)"
}

run_checkpoint() {
	echo "== checkpoint of ViT-L/16, $(df --output=fstype,source "$1" | tail -n 1 | tr -s ' ')"
	"$bin/bench_checkpoint" "$1" vit_l_16 "$pairs"
}

run_comm() {
	local ranks
	echo "== all-reduce of 88 MiB in 4 buckets during 100 ms of arithmetic, milliseconds, median of 15; small: 8 bytes"
	for ranks in 2 $(nproc); do
		MURAL_MODULE_PATH=$bin/../lib/mural OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
			OMPI_MCA_hwloc_base_binding_policy=none mpirun -n "$ranks" "$bin/bench_comm"
		[ "$(nproc)" -gt 2 ] || break
	done
}

machine
case ${1:-all} in
peer) run_peer ;;
scaling) run_scaling ;;
ops) "$bin/bench_ops" ;;
checkpoint) run_checkpoint "${2:-$work}" ;;
comm) run_comm ;;
all)
	run_peer
	run_scaling
	"$bin/bench_ops"
	run_checkpoint "$work"
	run_comm
	;;
*)
	echo "usage: bench/run.sh [peer|scaling|ops|comm|checkpoint]" >&2
	exit 2
	;;
esac
