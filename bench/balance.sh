#!/usr/bin/env bash
# Unequal workers: equal shares against balanced ones; prints tables for docs/benchmarks.md.
#
#   bench/balance.sh emulated     the study's five machines (examples/clusters/tesla.json): 1 to 5 ranks, a batch of 16 per rank or of 80
#   bench/balance.sh exhaustive   the best team and split of the five among emulated runs, against what `auto` came to
#   bench/balance.sh real         two ranks on two cores, one of which BUSY other processes load (default 2: about to half)
#   bench/balance.sh overhead     what deciding costs a job of equal ranks: counted events times the cost of each
#   bench/balance.sh              all of them
#
# SPEED (default 1): the emulated cluster so many times faster than described, devices and links alike. Gradients of a model with 2.2 million
# parameters count as ViT-B's. STEPS: measured steps (default 6), PAIRS: of `real` (default 3). SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${MURAL_BUILD:-build/release}/bin
speed=${SPEED:-1}
steps=${STEPS:-6}
pairs=${PAIRS:-3}
busy=${BUSY:-2} # one takes a fifth only: the scheduler favours who also sleeps
settle=40 # steps until shares have settled, and a few
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

median() { sort -g | awk '{v[NR] = $1} END {print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

# Of the last N steps of a run: last_steps FOLDER N
last_steps() {
	awk -F, 'NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i; next}
		{print $at["data_seconds"] + $at["forward_seconds"] + $at["backward_seconds"] + $at["communication_exposed_seconds"] + $at["optimizer_seconds"]}' \
		"$1/steps.csv" | tail -n "$2" | median
}

# tesla_file NODES: a cluster of these, f: RTX 3070, p: Tesla P4, g: GTX 1070 on the slow link; SPEED times as fast.
tesla_file() {
	local node file=$work/tesla-$1.json
	{
		awk -v s="$speed" 'BEGIN {
			printf "{ name: \"tesla\", algorithm: \"ring\",\n"
			printf "  devices: { f: { seconds_per_image: %g }, p: { seconds_per_image: %g }, g: { seconds_per_image: %g } },\n", 0.0143 / s, 0.045 / s, 0.041 / s
			printf "  links: { fast: { gb_per_s: %g, latency_us: 30 }, slow: { gb_per_s: %g, latency_us: 50 } },\n  nodes: [\n", 0.95 * s, 0.12 * s }'
		while read -r -n 1 node; do
			case $node in
			f | p) echo "    { devices: { $node: 1 }, uplink: \"fast\" }" ;;
			g) echo "    { devices: { g: 1 }, uplink: \"slow\" }" ;;
			esac
		done <<<"$1"
		echo "  ] }"
	} >"$file"
	echo "$file"
}

# train_on NODES NAME STEPS OPTION...: the folder is $work/NAME
train_on() {
	local nodes=$1 dir=$work/$2 count=$3
	shift 3
	"$bin/mural" train --quiet --ranks ${#nodes} --threads 1 --model mu --image-size 16 --patch 16 --channels 1 --classes 10 --width 128 \
		--heads 2 --mlp-width 512 --depth 11 --data synthetic --synthetic-images 20000 --max-steps "$count" --measure-only \
		--cluster "$(tesla_file "$nodes")" --link-scale 39.07 --run-dir "$dir" --overwrite "$@" >"$dir.log" 2>&1 ||
		{ cat "$dir.log" >&2; exit 1; }
}

five=fffpg

run_emulated() {
	local overlap policy n batch nodes equal balanced
	echo "== the study's five machines, emulated, images per second; auto: --balance auto --balance-remove, after $settle steps"
	for policy in 16 80; do
		for overlap in --no-overlap-comm --overlap-comm; do
			echo "batch $([ $policy = 16 ] && echo 16 per rank || echo 80), $overlap"
			for n in 1 2 3 4 5; do
				nodes=${five:0:n}
				batch=$([ $policy = 16 ] && echo $((16 * n)) || echo 80)
				train_on "$nodes" equal $((steps + 3)) --batch "$batch" --micro-batch $(((batch + n - 1) / n)) $overlap \
					--balance "$(even "$batch" "$n")"
				train_on "$nodes" auto $((settle + steps)) --batch "$batch" --micro-batch "$batch" $overlap \
					--balance auto --balance-remove
				equal=$(last_steps "$work/equal" "$steps")
				balanced=$(last_steps "$work/auto" "$steps")
				awk -v n="$n" -v b="$batch" -v e="$equal" -v a="$balanced" -v v="$speed" -v shares="$(shares_of "$work/auto")" \
					'BEGIN {printf "  %d ranks, batch %d: equal %.2f, auto %.2f  (%s)\n", n, b, b / e / v, b / a / v, shares}'
			done
		done
	done
}

# even BATCH RANKS: shares that differ by one at most.
even() { awk -v b="$1" -v n="$2" 'BEGIN {for (r = 0; r < n; r++) printf "%s%d", r ? "," : "", int(b * (r + 1) / n) - int(b * r / n)}'; }

# The last row of balance.csv; a run of one rank has none.
shares_of() { [ -e "$1/balance.csv" ] && tail -n 1 "$1/balance.csv" | cut -d, -f3 || echo all; }

# try_split NODES SHARES OVERLAP: seconds of a step
try_split() {
	train_on "$1" try $((steps + 3)) --batch 80 --micro-batch 80 "$3" --balance "$2"
	last_steps "$work/try" "$steps"
}

# The forecast's balanced shares for all of these nodes, as "a,b,c".
forecast_split() {
	"$bin/mural" plan --balance --cluster "$(tesla_file "$1")" --batch 80 --model mu --image-size 16 --patch 16 --channels 1 --classes 10 \
		--width 128 --heads 2 --mlp-width 512 --depth 11 --link-scale 39.07 "$2" --result "$work/plan.json" >/dev/null
	awk '/"balanced"/ {on = 1} /"best"/ {on = 0} on && /shares/ {take = 1; line = ""; next}
		take && /\]/ {take = 0; last = line} take {gsub(/[ \t]/, ""); line = line $0} END {print last}' "$work/plan.json"
}

# splits TEAM FORECAST OVERLAP: every split to consider with the least seconds that a step of it can take, as "SECONDS TEAM a,b,c".
# In steps of a twentieth of the batch (a tenth for four and more ranks), and one or two images to and fro around the forecast; of equal
# cards the first has most. The least: no emulated step is faster than its slowest rank's computing and the described reduction
# allow. Without overlap that is their sum; with it the last bucket of at most 13 travels after all computing, and the first after forward.
splits() {
	awk -v team="$1" -v forecast="$2" -v overlap="$3" -v v="$speed" '
		function least(s,  r, c, w, link, lat, sec) {
			c = 0; w = 0.95e9; lat = 3e-5
			for (r = 1; r <= n; r++) {
				sec = kind[r] == "f" ? 0.0143 : kind[r] == "p" ? 0.045 : 0.041
				if (s[r] * sec > c) c = s[r] * sec
				if (kind[r] == "g") { w = 0.12e9; lat = 5e-5 }
			}
			link = n > 1 ? 2 * (n - 1) * (lat + 3.4e8 / n / w) : 0
			if (overlap == "--no-overlap-comm") return (c + link) / v
			return (c + link / 13 > link + c / 3 ? c + link / 13 : link + c / 3) / v
		}
		function put(s,  r, line) {
			for (r = 1; r <= n; r++) {
				if (s[r] < 1 || (r > 1 && kind[r] == kind[r - 1] && s[r] > s[r - 1])) return
				line = line (r > 1 ? "," : "") s[r]
			}
			if (!(line in seen)) { seen[line] = 1; printf "%.4f %s %s\n", least(s), team, line }
		}
		function grid(r, left,  i) {
			if (r == n) { share[n] = left; put(share); return }
			for (i = unit; i <= left - unit * (n - r); i += unit) { share[r] = i; grid(r + 1, left - i) }
		}
		BEGIN {
			n = split(team, kind, ""); unit = n > 3 ? 8 : 4
			grid(1, 80)
			split(forecast, best, ",")
			put(best)
			for (d = 1; d <= 2; d++) for (i = 1; i <= n; i++) for (j = 1; j <= n; j++) if (i != j) {
				split(forecast, near, ","); near[i] += d; near[j] -= d; put(near)
			}
		}'
}

run_exhaustive() {
	local overlap team bound split best seconds auto runs considered
	for overlap in --no-overlap-comm --overlap-comm; do
		echo "== batch 80, $overlap: every team of the five machines and a grid of splits, images per second"
		: >"$work/all"
		for team in f ff fff p fp ffp fffp g fg ffg fffg pg fpg ffpg fffpg; do
			splits "$team" "$(forecast_split "$team" $overlap)" $overlap
		done | sort -g >"$work/splits"
		best=1e9 runs=0
		considered=$(wc -l <"$work/splits")
		while read -r bound team split; do
			# Neither this nor any after it can be faster; but each team runs once.
			awk -v b="$bound" -v t="$best" 'BEGIN {exit b >= t}' || ! grep -q " $team " "$work/all" || continue
			seconds=$(try_split "$team" "$split" $overlap </dev/null)
			runs=$((runs + 1))
			awk -v b="$bound" -v s="$seconds" 'BEGIN {exit s < 0.995 * b}' || echo "  $team $split took $seconds s, less than the $bound s it should take"
			awk -v t="$team" -v s="$seconds" -v v="$speed" -v shares="$split" 'BEGIN {printf "%.2f %s %s\n", 80 / s / v, t, shares}' >>"$work/all"
			best=$(awk -v a="$best" -v b="$seconds" 'BEGIN {print b < a ? b : a}')
		done <"$work/splits"
		sort -rg "$work/all" | sed 's/^/  /'
		train_on $five auto $((settle + steps)) --batch 80 --micro-batch 80 $overlap --balance auto --balance-remove
		auto=$(awk -v s="$(last_steps "$work/auto" "$steps")" -v v="$speed" 'BEGIN {print 80 / s / v}')
		sort -rg "$work/all" | head -n 1 | awk -v a="$auto" -v n="$runs" -v all="$considered" -v shares="$(shares_of "$work/auto")" \
			'{printf "best of %d emulated splits (of %d; the others cannot be faster): %.2f (%s %s); auto %.2f (%s): %.1f %% of it (target: at least 90)\n", n, all, $1, $2, $3, a, shares, 100 * a / $1}'
	done
}

# real_step NAME OPTION...: median of the last steps, two ranks on two cores
real_step() {
	local dir=$work/$1
	shift
	"$bin/mural" train --quiet --ranks 2 --threads 1 --batch 32 --micro-batch 32 --model vit_ti_16 --image-size 64 --data synthetic \
		--synthetic-images 20000 --max-steps $((settle + 2 * steps)) --measure-only --run-dir "$dir" --overwrite "$@" >"$dir.log" 2>&1 ||
		{ cat "$dir.log" >&2; exit 1; }
	last_steps "$dir" $((2 * steps))
}

run_real() {
	local pair equal auto hogs=()
	echo "== ViT-Ti/16, 64 pixels, batch 32, two ranks on two cores, $busy busy processes on the second; load before: $(cut -d' ' -f1 /proc/loadavg)"
	for pair in $(seq "$busy"); do
		taskset -c 1 sh -c 'while :; do :; done' &
		hogs+=($!)
	done
	trap 'kill "${hogs[@]}" 2>/dev/null; rm -rf "$work"' EXIT
	: >"$work/ratios"
	for pair in $(seq "$pairs"); do
		equal=$(real_step equal --balance 16,16)
		auto=$(real_step auto --balance auto)
		awk -v p="$pair" -v e="$equal" -v a="$auto" -v shares="$(shares_of "$work/auto")" \
			'BEGIN {printf "pair %d: equal %.1f images/s, auto %.1f images/s (%s), ratio %.3f\n", p, 32 / e, 32 / a, shares, e / a}'
		awk -v e="$equal" -v a="$auto" 'BEGIN {print e / a}' >>"$work/ratios"
	done
	kill "${hogs[@]}"
	trap 'rm -rf "$work"' EXIT
	echo "median ratio: $(median <"$work/ratios") (target: at least 1.3)"
}

run_overhead() {
	local ranks
	"$bin/bench_balance"
	for ranks in 2 4; do
		MURAL_MODULE_PATH=$bin/../lib/mural OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
			OMPI_MCA_hwloc_base_binding_policy=none mpirun -n $ranks "$bin/bench_balance"
	done
}

case ${1:-all} in
emulated) run_emulated ;;
exhaustive) run_exhaustive ;;
real) run_real ;;
overhead) run_overhead ;;
all) run_emulated; run_exhaustive; run_real; run_overhead ;;
*) echo "bench/balance.sh emulated|exhaustive|real|overhead" >&2; exit 2 ;;
esac
