#!/usr/bin/env bash
# What a run says about the energy that it used: made-up counters, none, and a run that goes on without them.
# SPDX-License-Identifier: MIT
set -uo pipefail
mural=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

wrong() {
	echo "$1" >&2
	[ $# -lt 2 ] || cat "$2" >&2
	failures=$((failures + 1))
}

train() {
	"$mural" train --model mu --image-size 16 --patch 8 --channels 1 --classes 4 --batch 8 --threads 1 --quiet \
		--data synthetic --synthetic-images 16 "$@" >"$work/out" 2>&1 || wrong "train $* failed" "$work/out"
}

# says FILE PATTERN
says() {
	grep -Eq -- "$2" "$1" || wrong "$1 lacks '$2'" "$1"
}

export MURAL_NVML=none.so
export MURAL_POWERCAP=$work/powercap
domain=$work/powercap/intel-rapl:0
mkdir -p "$domain"
echo package-0 >"$domain/name"
echo 5000000 >"$domain/energy_uj"
echo 9000000 >"$domain/max_energy_range_uj"

# A counter that stands still: 0 joules, which is not the same as an unknown number.
train --epochs 2 --checkpoint-every 2 --run-dir "$work/run"
says "$work/run/result.json" '"joules": 0,'
says "$work/run/result.json" '"joules_per_image": 0,'
says "$work/run/result.json" '"meters": "RAPL \(package-0\)"'
says "$work/run/result.json" '"not_measurable": null'
[ "$(head -n 1 "$work/run/energy.csv")" = epoch,images,seconds,processor_joules,gpu_joules,watts,joules_per_image ] ||
	wrong 'the header of energy.csv' "$work/run/energy.csv"
[ "$(grep -Ec '^[12],16,[0-9.]+,0\.000,,0\.000,0\.000000$' "$work/run/energy.csv")" = 2 ] ||
	wrong 'the rows of energy.csv' "$work/run/energy.csv"
"$mural" info >"$work/info"
says "$work/info" '^  energy +processors: package-0$'

# One that moves while a run trains is counted.
(while [ ! -e "$work/done" ]; do
	i=$((${i:-0} + 1))
	printf '%07d' $((5000000 + i % 4000000)) 1<>"$domain/energy_uj" # in place: never seen empty
done) &
train --epochs 60 --run-dir "$work/moving"
touch "$work/done"
wait
says "$work/moving/result.json" '"joules": (0\.|[1-9])'

# Without counters the run is the same, and says why.
export MURAL_POWERCAP=$work/none
train --epochs 1 --run-dir "$work/without"
says "$work/without/result.json" '"joules": null'
says "$work/without/result.json" '"not_measurable": "processors: this system shows no energy counters'
[ ! -e "$work/without/energy.csv" ] || wrong 'an energy.csv without energy'
"$mural" info >"$work/info"
says "$work/info" '^  energy +not measurable here$'
says "$work/info" '^ +-> processors: this system shows no energy counters'

[ $failures -eq 0 ] && echo 'energy is told as it is'
[ $failures -eq 0 ]
