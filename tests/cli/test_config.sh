#!/usr/bin/env bash
# The configuration as the program tells it: exit codes, what goes to which stream, and --show-config read back.
# The words are tested in tests/unit/test_config_*.c. SPDX-License-Identifier: MIT
set -uo pipefail
mural=$1
cases=$(cd "$(dirname "$0")/.." && pwd)/cases
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

wrong() {
	echo "line ${BASH_LINENO[1]}: $1" >&2
	cat out err >&2
	failures=$((failures + 1))
}

# run EXPECTED_CODE ARGUMENTS...
run() {
	local expected=$1 code=0
	shift
	"$mural" train "$@" >out 2>err </dev/null || code=$?
	[ $code -eq "$expected" ] || wrong "'mural train $*' ended with $code, not $expected"
}

says() {
	[[ $(<err) == *"$1"* ]] || wrong "standard error lacks '$1'"
}

accepted=(trailing-comma hash-comment slash-comment unquoted-keys bom-crlf float-bucket-size zero3-fp16-offload onebit-adam
	bool-string zero-bool-legacy deprecated-keys unknown-key-typo misplaced-key offload-param-stage2 auto-one-derivable
	monitors-profilers)
rejected=(python-literal template-placeholder trailing-garbage duplicate-key numeric-string scalar-where-object
	batch-missing auto-values bf16-with-fp16-keys nvme-offload-missing-path onebit-adam-zero fp16-bf16-both)

# Without the origins: what is shown must show itself again.
values() {
	sed 's/, # .*/,/' "$1"
}

for ranks in 1 4; do
	for name in "${accepted[@]}"; do
		run 0 --config "$cases/ds-config/$name.json" --ranks $ranks --show-config
		[ -s out ] || wrong "$name shows nothing"
		values out >first
		mv out shown.json
		run 0 --config shown.json --ranks $ranks --show-config
		[ "$(values out)" = "$(<first)" ] || wrong "$name: what is shown does not resolve to the same"
	done
	for name in "${rejected[@]}"; do
		run 2 --config "$cases/ds-config/$name.json" --ranks $ranks --show-config
		[ -s out ] && wrong "$name is refused and still shows values"
		says "$name.json"
	done
done

# The message is the person's: once, with file, line and key, and no run folder is left behind.
run 2 --config "$cases/ds-config/python-literal.json" --run-dir never
says "python-literal.json:3:3: wall_clock_breakdown"
says 'expected true or false, got `False`'
[ "$(grep -c 'got `False`' err)" -eq 1 ] || wrong "said more than once"
[ -e never ] && wrong "a refused run left a folder"

run 2 --config "$cases/ds-config/zero3-fp16-offload.json" --data synthetic --run-dir never
says "zero_optimization.stage 3 is not supported"
says "zero3-fp16-offload.json:5:5"
[ -e never ] && wrong "a refused run left a folder"

# Warnings are said, and errors when asked for.
run 0 --config "$cases/paper-ds_config.json" --show-config
says "W-UNKNOWN: "
says "did you mean train_micro_batch_size_per_gpu?"
run 2 --config "$cases/paper-ds_config.json" --show-config --strict-config
says "3 warnings"

run 2 --bacth 8
says "did you mean --batch?"
run 2 --config missing.json
says "missing.json"
run 0 --batch 8 --lr 0.5 --show-config
grep -q '"lr": 0.5, # argument --lr' out || wrong "the origin of --lr is not shown"

[ $failures -eq 0 ] && echo "the configuration is told as promised"
exit $((failures > 0))
