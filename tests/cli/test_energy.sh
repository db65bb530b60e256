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

# One that moves while a run trains is counted. On a busy machine a whole run may pass without a turn for who moves it.
(while [ ! -e "$work/done" ]; do
	i=$((${i:-0} + 1))
	printf '%07d' $((5000000 + i % 4000000)) 1<>"$domain/energy_uj" # in place: never seen empty
done) &
for _ in {1..50}; do
	train --epochs 60 --run-dir "$work/moving" --overwrite
	! grep -Eq '"joules": (0\.|[1-9])' "$work/moving/result.json" || break
done
touch "$work/done"
wait
grep '"joules": ' "$work/moving/result.json" >"$work/joules"
says "$work/joules" '"joules": (0\.|[1-9])'

# A card whose counter grows by 12 J at each reading (one per stretch of steps, and one in five seconds on a slow machine).
# number FILE KEY: of "energy" in a result
number() {
	sed -n '/"energy": {/,/}/s/.*"'"$2"'": \([0-9.e+-]*\),*$/\1/p' "$1"
}
echo 5000000 >"$domain/energy_uj"
mkdir "$work/modules"
ln -s "$(dirname "$mural")/../lib/test/fake_cuda.so" "$work/modules/mural_cuda.so"
ln -s "$(dirname "$mural")/../lib/test/fake_nvml.so" "$work/modules/libcuda.so.1" # a driver is there: any library will do
on_card() {
	LD_LIBRARY_PATH=$work/modules MURAL_MODULE_PATH=$work/modules FAKE_NVML_ENERGY=1000 FAKE_NVML_STEP=12000 train --ops cuda "$@"
}
export MURAL_NVML
MURAL_NVML=$(dirname "$mural")/../lib/test/fake_nvml.so
on_card --epochs 2 --run-dir "$work/card"
says "$work/card/result.json" '"meters": "RAPL \(package-0\), NVML"'
says "$work/card/result.json" '"not_measurable": null'
joules=$(number "$work/card/result.json" gpu_joules)
awk -v j="${joules:-0}" 'BEGIN { exit !(j >= 24 && j % 12 == 0) }' || wrong "a card that used $joules J" "$work/card/result.json"
[ "$(number "$work/card/result.json" joules)" = "$joules" ] || wrong 'the sum of both' "$work/card/result.json"
awk -v j="$(number "$work/card/result.json" joules_per_image)" -v all="$joules" 'BEGIN { exit j * 32 != all }' ||
	wrong 'joules per image in the result' "$work/card/result.json"
awk -F, -v all="$joules" 'NR > 1 {
	sum += $5
	wrong += $4 != 0 || $5 < 12 || $5 % 12 || $7 * 16 != $5 || ($6 * $3 / $5 - 1) ^ 2 > 1e-3
}
END { exit wrong || sum != all || NR != 3 }' "$work/card/energy.csv" || wrong "a card's rows in energy.csv" "$work/card/energy.csv"

[ "$(grep -Ec ',0,[12],[0-9.]+,3,Card of Paper,87\.0,51200,30720,81920,61\.0$' "$work/card/metrics.csv")" = 2 ] ||
	wrong "a card's rows in metrics.csv" "$work/card/metrics.csv"

# The card is known and its driver's library is not there: the sum is not known either, and the reason is told.
MURAL_NVML=none.so
on_card --epochs 1 --run-dir "$work/no-driver"
says "$work/no-driver/result.json" '"joules": null'
says "$work/no-driver/result.json" '"not_measurable": "GPUs: there is no NVIDIA driver \(none.so was not found\)"'
awk -F, 'NR == 2 && ($4 != "0.000" || $5 $6 $7 != "") { exit 1 }' "$work/no-driver/energy.csv" ||
	wrong 'energy.csv with half of it known' "$work/no-driver/energy.csv"
grep -Eq ',0,1,[0-9.]+,0,Card of Paper,,[0-9]+,[0-9]+,[0-9]+,$' "$work/no-driver/metrics.csv" ||
	wrong 'metrics.csv without a driver' "$work/no-driver/metrics.csv"

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
