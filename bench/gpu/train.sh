#!/usr/bin/env bash
# Whole training steps on a GPU, Mural and PyTorch in turns: the table of docs/benchmarks.md, "Training on a GPU".
#
#   bench/gpu/train.sh [MODEL:IMAGES[:PRECISION]]...       default: B/16 at 16, 64 and 256 images in bf16
#
# MODEL is one of vit_s_16, vit_b_16, vit_l_16, vit_h_14; PRECISION bf16 (default) or fp32. A line has the medians of
# ROUNDS (default 3) turns of STEPS (default 30) steps each. Mural's time is a step's wall time, images from host memory
# and the wait for them included; the peer's images lie on the card. MURAL_BUILD is where Mural was built (default
# build/gpu), MURAL_PEER_PYTHON an interpreter with torch and timm (default python3; without them the peer is left out).
# SPDX-License-Identifier: MIT
set -uo pipefail
cd "$(dirname "$0")/../.."
build=${MURAL_BUILD:-build/gpu}
python=${MURAL_PEER_PYTHON:-python3}
rounds=${ROUNDS:-3}
steps=${STEPS:-30}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export MURAL_MODULE_PATH=${MURAL_MODULE_PATH:-$PWD/$build/lib/mural}

median() { sort -g | awk '{v[NR] = $1} END {print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

# Seconds per step and GiB of the card: mural_turn MODEL IMAGES PRECISION
mural_turn() {
	local side=224 dir=$work/run
	"$build/bin/mural" train --quiet --ops cuda --model "$1" --image-size $side --classes 1000 --data synthetic \
		--synthetic-images $(($2 * (steps + 6))) --batch "$2" --micro-batch "$2" --precision "$3" --optimizer AdamW --lr 1e-4 \
		--max-steps $((steps + 6)) --eval-every 0 --prefetch 16 --loader-threads "${LOADERS:-14}" --run-dir "$dir" --overwrite \
		${MURAL_OPTIONS:-} >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
	awk -F, 'NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i}
		NR > 7 {print $at["data_seconds"] + $at["forward_seconds"] + $at["backward_seconds"] + $at["optimizer_seconds"]}' \
		"$dir/steps.csv" | median
}

timm_name() {
	case $1 in
	vit_s_16) echo vit_small_patch16_224 ;;
	vit_b_16) echo vit_base_patch16_224 ;;
	vit_l_16) echo vit_large_patch16_224 ;;
	vit_h_14) echo vit_huge_patch14_224 ;;
	esac
}

compare() {
	local model=$1 images=$2 precision=${3:-bf16} ours= theirs= memory= line
	if "$python" -c 'import torch, timm' 2>/dev/null; then
		coproc PEER { exec "$python" bench/gpu/peer_step.py --model "$(timm_name "$model")" --batch "$images" --precision "$precision" \
			--steps "$steps" 2>"$work/peer.log"; }
		read -r line <&"${PEER[0]}" || { tail -5 "$work/peer.log" >&2; }
	fi
	for _ in $(seq "$rounds"); do
		ours+="$(mural_turn "$model" "$images" "$precision")"$'\n'
		if [ -n "${PEER_PID:-}" ]; then
			echo go >&"${PEER[1]}"
			read -r line memory <&"${PEER[0]}"
			theirs+="$line"$'\n'
		fi
	done
	if [ -n "${PEER_PID:-}" ]; then
		exec {PEER[1]}>&-
		wait "$PEER_PID" 2>/dev/null
	fi
	ours=$(printf %s "$ours" | median)
	theirs=$(printf %s "$theirs" | median)
	awk -v m="$model" -v n="$images" -v p="$precision" -v a="$ours" -v b="$theirs" -v g="$memory" 'BEGIN {
		printf "%s, %d, %s: Mural %.0f images/s (%.2f ms)", m, n, p, n / a, a * 1e3
		if (b > 0) printf "; PyTorch %.0f images/s (%.2f ms, %.1f GiB); ratio %.3f", n / b, b * 1e3, g, b / a
		print ""}'
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
for spec in ${*:-vit_b_16:16 vit_b_16:64 vit_b_16:256}; do
	IFS=: read -r model images precision <<<"$spec"
	compare "$model" "$images" "${precision:-bf16}"
done
