#!/usr/bin/env bash
# Benchmarks on this machine's CPU; prints tables for docs/benchmarks.md.
#
#   bench/run.sh peer      ViT-S/16 at 224, batch 16, fp32: Mural and PyTorch eager (timm), alternating pairs
#   bench/run.sh scaling   two ranks x one thread against one rank x one thread with the other core loaded alike
#   bench/run.sh bf16      ViT-S/16 at 224, batch 32: bf16 against fp32, alternating pairs, and by which instructions
#   bench/run.sh ops       each operation against its floor
#   bench/run.sh checkpoint [FOLDER]   ViT-L/16: a set against the same bytes written plainly, and how much it holds the training up
#   bench/run.sh comm      all-reduces: alone, under arithmetic, and what of the arithmetic they cost; on 2 ranks and a rank per core
#   bench/run.sh overlap   two ranks on a link that makes communication 30 % of a step: what overlap saves of it
#   bench/run.sh emulation do emulated links and devices take as long as described?
#   bench/run.sh balance [emulated|exhaustive|real|overhead]   unequal workers: equal shares against balanced ones
#   bench/run.sh profiling what watching costs: events of a step times the cost of each
#   bench/run.sh tune [CONFIG]   mural tune against a sweep of every configuration: how close, in what part of the time
#   bench/run.sh plan      forecasts against measured steps and memory, each round calibrated anew
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

# Median seconds per step of a Mural run, the first two steps left out: mural_step NAME RANKS THREADS BATCH MICRO [OPTION...]
mural_step() {
	local dir=$work/$1
	${pin:-} "$bin/mural" train --quiet --ranks "$2" --threads "$3" --batch "$4" --micro-batch "$5" --model vit_s_16 --classes 1000 \
		--data synthetic --synthetic-images $((($steps + 2) * $4)) --max-steps $((steps + 2)) --eval-every 0 --run-dir "$dir" \
		--lr 1e-4 --overwrite "${@:6}" >"$dir.log" 2>&1 || { cat "$dir.log" >&2; exit 1; }
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

run_bf16() {
	local threads wide narrow
	threads=$(nproc)
	echo "== ViT-S/16, 224, batch 32, $threads threads: bf16 against fp32, $pairs alternating pairs of $steps steps"
	MURAL_MODULE_PATH=$bin/../lib/mural "$bin/mural" info | sed -n 's/^  \(matrix products\|bf16 products\|instructions\) */\1: /p'
	: >"$work/ratios"
	for pair in $(seq "$pairs"); do
		wide=$(mural_step wide 1 "$threads" 32 32)
		narrow=$(mural_step narrow 1 "$threads" 32 32 --bf16)
		awk -v a="$wide" -v b="$narrow" 'BEGIN {print a / b}' >>"$work/ratios"
		awk -v p="$pair" -v a="$wide" -v b="$narrow" \
			'BEGIN {printf "pair %d: fp32 %.2f images/s, bf16 %.2f images/s, ratio %.3f\n", p, 32 / a, 32 / b, a / b}'
	done
	echo "median ratio: $(median <"$work/ratios") (target where bf16 products are AMX's or AVX512_BF16's: at least 1.5)"
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

# Steps of two ranks on a cluster file: cluster_step NAME CLUSTER OPTION...; leaves its folder in $work/NAME.
cluster_step() {
	local dir=$work/$1 cluster=$2
	shift 2
	"$bin/mural" train --quiet --ranks 2 --threads 1 --batch 16 --micro-batch 8 --model vit_ti_16 --data synthetic \
		--synthetic-images $(((steps + 4) * 16)) --max-steps $((steps + 4)) --eval-every 0 --checkpoint-epochs 0 --run-dir "$dir" \
		--overwrite ${cluster:+--cluster "$cluster"} "$@" >"$dir.log" 2>&1 || { cat "$dir.log" >&2; exit 1; }
	column "$dir/steps.csv" data forward backward communication_exposed optimizer
}

# Median over the steps of the sum of these columns of seconds, the first four steps left out: column FILE NAME...
column() {
	local file=$1
	shift
	awk -F, -v names="$*" 'NR == 1 {n = split(names, name, " "); for (i = 1; i <= NF; i++) at[$i] = i; next}
		NR > 5 {sum = 0; for (i = 1; i <= n; i++) sum += $at[name[i] "_seconds"]; print sum}' "$file" | median
}

# link_file SECONDS_PER_IMAGE GB_PER_S: two nodes; 0 seconds: as fast as this machine is
link_file() {
	local speed=""
	[ "$1" = 0 ] || speed="seconds_per_image: $1"
	echo "{ name: \"two\", algorithm: \"ring\", devices: { d: { $speed } }, links: { l: { gb_per_s: $2, latency_us: 50 } },"
	echo "  nodes: [ { count: 2, devices: { d: 1 }, uplink: \"l\" } ] }"
}

# overlap_pairs SECONDS_PER_IMAGE STEP
overlap_pairs() {
	local bandwidth with without traffic
	traffic=$(awk -v s="$2" 'BEGIN {print s * 0.3 / 0.7}')
	# 5.7 million gradients in fp32; a share c of the step with it is c / (1 - c) of the step without
	bandwidth=$(awk -v t="$traffic" 'BEGIN {print 5717416 * 4 / t / 1e9}')
	link_file "$1" "$bandwidth" >"$work/two.json"
	: >"$work/ratios"
	for pair in $(seq "$pairs"); do
		without=$(cluster_step without "$work/two.json" --no-overlap-comm)
		with=$(cluster_step with "$work/two.json")
		awk -v a="$without" -v b="$with" -v c="$traffic" 'BEGIN {print (a - b) / c}' >>"$work/ratios"
		awk -v p="$pair" -v a="$without" -v b="$with" -v c="$traffic" \
			'BEGIN {printf "pair %d: without %.1f ms, with %.1f ms, communication %.1f ms (%.0f %%), saved of it %.2f\n", p, 1e3 * a, 1e3 * b, 1e3 * c, 100 * c / a, (a - b) / c}'
	done
	echo "median share saved: $(median <"$work/ratios") (target: at least 0.7)"
}

run_overlap() {
	local step
	echo "== ViT-Ti/16, 224, 2 ranks x 8 images x 1 thread, overlap off and on, $pairs alternating pairs of $steps steps"
	step=$(cluster_step plain "")
	echo "computing as fast as this machine does ($(awk -v s="$step" 'BEGIN {printf "%.1f", 1e3 * s}') ms per step):"
	overlap_pairs 0 "$step"
	echo "computing at the pace of an emulated device, twice as slow:"
	overlap_pairs "$(awk -v s="$step" 'BEGIN {print 2 * s / 8}')" "$(awk -v s="$step" 'BEGIN {print 2 * s}')"
}

run_emulation() {
	local step described
	echo "== emulated collectives on 2 ranks, 0.1 GB/s and 1 ms"
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MURAL_MODULE_PATH=${MURAL_MODULE_PATH:-$bin/../lib/mural} mpirun -n 2 "$bin/bench_links"
	echo "== emulated devices: ViT-Ti/16, 224, 2 ranks x 8 images"
	step=$(cluster_step plain "")
	described=$(awk -v s="$step" 'BEGIN {printf "%.6f", 2 * s / 8}')
	link_file "$described" 10 >"$work/two.json"
	cluster_step paced "$work/two.json" >/dev/null
	step=$(column "$work/paced/steps.csv" forward backward)
	awk -v a="$step" -v b="$described" 'BEGIN {printf "8 images at %.4f s each: described %.1f ms, measured %.1f ms (%+.2f %%)\n", b, 8e3 * b, 1e3 * a, 100 * (a / 8 / b - 1)}'
}

run_profiling() {
	local dir=$work/watched step spans collectives
	echo "== everything watched: make demo's training, 2 ranks x 64 images"
	"$bin/mural" train --quiet --config examples/demo.json --ranks 2 --data synthetic --synthetic-images 1280 --epochs 1 \
		--run-dir "$dir" --overwrite --timeline "$work/t.json" --timeline-first 3 --timeline-steps 5 \
		--comms-logger --tensorboard >"$dir.log" 2>&1 || { cat "$dir.log" >&2; exit 1; }
	step=$(column "$dir/steps.csv" data forward backward communication_exposed optimizer)
	spans=$(grep -o '"ph":"X"' "$work/t.json" | wc -l)
	collectives=$(grep -o '"cat":"collective"' "$work/t.json" | wc -l)
	"$bin/bench_observe" | tee "$work/costs"
	awk -v step="$step" -v spans="$spans" -v collectives="$collectives" '{cost[$1] = $2}
		END {
			s = spans / 10; c = collectives / 10 # of one rank in one step
			all = s * cost["span_on"] + c * cost["collective"] + cost["tensorboard"] + cost["csv_monitor"]
			printf "a step of %.1f ms: %.1f spans, %.1f collectives, 8 curves twice: %.1f us, %.4f %% (target: below 1 %%)\n", 1e3 * step, s, c, 1e6 * all, 100 * all / step
			printf "off: %.1f spans at %.2g ns each\n", s, 1e9 * cost["span_off"]
		}' "$work/costs"
}

# A member of a line of tune.json: member LINE NAME
member() { sed -n "s/.*\"$2\": *\([^,}]*\).*/\1/p" <<<"$1"; }

# tune_point NAME RANKS THREADS MICRO ACCUMULATION BATCH STEPS: "images/s seconds" of one trial as mural tune makes them
tune_point() {
	local dir=$work/sweep/$1 from to
	from=$(date +%s.%N)
	"$bin/mural" train --config "$tuned_config" --ranks "$2" --threads "$3" --micro-batch "$4" --accumulation "$5" --batch "$6" \
		--epochs 100 --max-steps $(($7 + 2)) --drop-last --measure-only --quiet --overwrite --run-dir "$dir" >"$work/sweep.log" 2>&1 ||
		{ cat "$work/sweep.log" >&2; exit 1; }
	to=$(date +%s.%N)
	awk -F, 'NR > 3 {print $7 + $8 + $9 + $10 + $12}' "$dir/steps.csv" | median |
		awk -v b="$6" -v a="$from" -v z="$to" '{print b / $1, z - a}'
}

# mural tune against a sweep of all its configurations, trials of the same length, in rounds: rounds are interleaved with searches
run_tune() {
	local rounds=${ROUNDS:-3} round line name ranks threads micro times batch speed steps
	tuned_config=${1:-examples/demo.json}
	echo "== mural tune on $tuned_config, ranks 1,$(nproc), threads 1,$(nproc): $rounds searches between $rounds sweeps of every configuration"
	mkdir -p "$work/sweep"
	for round in $(seq "$rounds"); do
		"$bin/mural" tune --config "$tuned_config" --ranks "1,$(nproc)" --threads "1,$(nproc)" --folder "$work/tune$round" \
			>"$work/tune$round.out" || { cat "$work/tune$round.out" >&2; exit 1; }
		cat "$work/tune$round.out"
		while read -r line; do
			ranks=$(member "$line" ranks) threads=$(member "$line" threads) micro=$(member "$line" micro_batch)
			times=$(member "$line" accumulation) batch=$(member "$line" train_batch) speed=$(member "$line" images_per_second)
			steps=$(awk -v b="$batch" -v s="$speed" 'BEGIN {n = 2 / (b / s); n = n > int(n) ? int(n) + 1 : n; print (n < 3 ? 3 : n > 1000 ? 1000 : n)}')
			name=$ranks-$threads-$micro
			echo "$name $(tune_point "$name" "$ranks" "$threads" "$micro" "$times" "$batch" "$steps")"
		done < <(sed -n '/"points"/,$p' "$work/tune1/tune.json" | grep '"micro_batch"') >"$work/sweep$round.txt"
	done
	cat "$work"/sweep[0-9]*.txt | sort | awk '{n = ++count[$1]; speed[$1, n] = $2; took[$1] += $3}
		END {for (p in count) {
			for (i = 1; i <= count[p]; i++) for (j = i + 1; j <= count[p]; j++) if (speed[p, j] < speed[p, i]) {
				t = speed[p, i]; speed[p, i] = speed[p, j]; speed[p, j] = t}
			m = count[p] % 2 ? speed[p, (count[p] + 1) / 2] : (speed[p, count[p] / 2] + speed[p, count[p] / 2 + 1]) / 2
			print p, m, took[p] / count[p]}}' | sort -k2,2gr >"$work/sweep.txt"
	echo "ranks-threads-micro, median images/s, seconds per trial:"
	cat "$work/sweep.txt"
	for round in $(seq "$rounds"); do
		line=$(grep '"chosen"' "$work/tune$round/tune.json")
		name=$(member "$line" ranks)-$(member "$line" threads)-$(member "$line" micro_batch)
		awk -v name="$name" -v took="$(sed -n 's/^  "seconds": *\([^,]*\),/\1/p' "$work/tune$round/tune.json")" -v n="$(grep -c '"step_seconds"' "$work/tune$round/tune.json")" '
			NR == 1 {best = $2; which = $1} $1 == name {mine = $2} {all += $3}
			END {printf "search: %d trials of %d, chose %s: %.1f images/s, %.1f %% of the best (%s); %.1f s, %.1f %% of the sweep'\''s %.0f s (targets: at least 95, at most 20)\n",
				n, NR, name, mine, 100 * mine / best, which, took, 100 * took / all, all}' "$work/sweep.txt"
	done
}

# number FILE KEY: the first number of this name in a JSON file; total FILE OBJECT: "total" inside an object of it
number() { sed -n "s/^ *\"$2\": \([-0-9.e+]*\),*\$/\1/p" "$1" | head -n 1; }
total() { sed -n "/\"$2\": {/,/}/s/^ *\"total\": \([0-9]*\).*/\1/p" "$1"; }

# plan_pair LABEL MODEL SIDE BATCH RANKS: forecast by $work/here.json, then the same training
plan_pair() {
	local dir=$work/run forecast measured memory
	local run="--model $2 --image-size $3 --micro-batch $4 --batch $(($4 * $5)) --ranks $5 --classes 1000 --ops cpu --data synthetic --synthetic-images 4096 --measure-only"
	# shellcheck disable=SC2086 # words
	"$bin/mural" plan $run --cluster "$work/here.json" --result "$work/plan.json" >/dev/null
	# shellcheck disable=SC2086 # words
	"$bin/mural" train --quiet $run --max-steps $((steps + 2)) --overwrite --run-dir "$dir" >"$dir.log" 2>&1 || { cat "$dir.log" >&2; exit 1; }
	forecast=$(number "$work/plan.json" step_seconds)
	measured=$(awk -F, 'NR > 3 {print $7 + $8 + $9 + $10 + $12}' "$dir/steps.csv" | median)
	memory=$([ "$(total "$work/plan.json" memory)" = "$(total "$dir/result.json" memory_planned_bytes)" ] &&
		[ "$(total "$dir/result.json" memory_used_bytes)" = "$(total "$dir/result.json" memory_planned_bytes)" ] && echo equal || echo DIFFERENT)
	awk -v f="$forecast" -v m="$measured" 'BEGIN {print f / m - 1}' >>"$work/plan.$1"
	awk -v l="$1" -v f="$forecast" -v m="$measured" -v memory="$memory" 'BEGIN {printf "  %-34s forecast %8.1f ms  measured %8.1f ms  %+5.1f %%  memory %s\n", l, 1e3 * f, 1e3 * m, 100 * (f / m - 1), memory}'
}

plan_labels='vit_ti_16@32,-1-rank-x-32 vit_ti_16@32,-2-ranks-x-32 vit_ti_16@96,-1-rank-x-16 vit_ti_16@96,-2-ranks-x-16 vit_s_16@224,-1-rank-x-16 vit_s_16@224,-2-ranks-x-16'
run_plan() {
	local round label from
	echo "== mural plan against trainings: $pairs rounds, each calibrated anew (S/16 at 224 measured itself, at 6 and 12 images)"
	rm -f "$work"/plan.*
	for round in $(seq "$pairs"); do
		from=$(date +%s)
		"$bin/mural" plan --calibrate --model vit_s_16 --micro-batch 12 --batch 12 --ranks 2 --output "$work/here.json" >"$work/calibrate" || exit 1
		echo "round $round: calibrated in $(($(date +%s) - from)) s; $(grep -o 'the rates.*' "$work/calibrate")"
		set -- vit_ti_16 32 32 vit_ti_16 96 16 vit_s_16 224 16
		for label in $plan_labels; do
			case $label in *1-rank-*) plan_pair "$label" "$1" "$2" "$3" 1 ;; *) plan_pair "$label" "$1" "$2" "$3" 2 && shift 3 ;; esac
		done
	done
	for label in $plan_labels; do
		echo "$label: median error $(median <"$work/plan.$label" | awk '{printf "%+.1f %%", 100 * $1}') (target: within 10 %)"
	done
	from=$(date +%s%N)
	"$bin/mural" plan --model vit_b_16 --micro-batch 16 --batch 16 --cluster <(echo "{ devices: { d: { seconds_per_image: 0.01 } }, links: { i: { gb_per_s: 100 }, u: { gb_per_s: 12 } },
		nodes: [ { count: 512, devices: { d: 8 }, inside: \"i\", uplink: \"u\" } ] }") >/dev/null
	echo "a plan for 4096 devices: $((($(date +%s%N) - from) / 1000000)) ms, the program's start included (target: well under 1 s)"
}

machine
case ${1:-all} in
peer) run_peer ;;
scaling) run_scaling ;;
bf16) run_bf16 ;;
ops) "$bin/bench_ops" ;;
checkpoint) run_checkpoint "${2:-$work}" ;;
comm) run_comm ;;
overlap) run_overlap ;;
emulation) run_emulation ;;
profiling) run_profiling ;;
balance) bench/balance.sh "${2:-all}" ;;
plan) run_plan ;;
tune) run_tune "${2:-}" ;;
all)
	run_peer
	run_scaling
	run_bf16
	"$bin/bench_ops"
	run_checkpoint "$work"
	run_comm
	run_overlap
	run_emulation
	run_profiling
	bench/balance.sh
	run_tune
	run_plan
	;;
*)
	echo "usage: bench/run.sh [peer|scaling|bf16|ops|comm|checkpoint|overlap|emulation|profiling|balance|tune|plan]" >&2
	exit 2
	;;
esac
