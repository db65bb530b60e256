#!/usr/bin/env bash
# What the program says and leaves behind: a folder of tests/cli/cases per case.
#
#     command   what is run, by bash, in an empty folder; see the variables below
#     exit      the exit code, 0 if there is no such file
#     stdout    an extended regular expression per line of output, for the whole line; "..." stands for any number of lines.
#     stderr    The same. No file: nothing may be written.
#     files     names that must be there afterwards, with "!" in front those that must not; "!*" means no file at all
#     ways      how it is run, "alone ranks" if there is no such file:
#                   alone     one rank                                $run and $ranks are empty
#                   ranks     Mural starts two                        $ranks is "--ranks 2"
#                   mpirun    mpirun starts two                       $run is "mpirun -n 2"
#
# In every way the same words are expected, so the runner takes away what differs: the line that announces ranks, the rank in
# front of a message, and, under plain mpirun, whatever mpirun itself says.
# A case is passed over, aloud, when its ranks need an MPI that is not here. Run one: test_cases.sh PROGRAM CASE...
# SPDX-License-Identifier: MIT
set -uo pipefail
export mural
mural=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
MURAL_MODULE_PATH=$(dirname "$mural")/../lib/mural
export MURAL_MODULE_PATH TMPDIR=$work
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export LSAN_OPTIONS=suppressions=$here/../support/lsan.supp:print_suppressions=0
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}fast_unwind_on_malloc=0
export TSAN_OPTIONS=suppressions=$here/../support/tsan.supp:ignore_noninstrumented_modules=1
unset MURAL_MPIRUN OMP_NUM_THREADS

# For commands: a model that trains in milliseconds; with two ranks, too.
model='--model mu --image-size 16 --patch 8 --channels 1 --classes 4 --batch 8 --threads 1'
tiny="$model --data synthetic --synthetic-images 16"

# bytes FILE 00 08 ...: appends them.
bytes() {
	local file=$1 byte
	shift
	for byte in "$@"; do
		printf "\\x$byte" >>"$file"
	done
}

# idx_set FOLDER: 16 training and 4 test images of 16 x 16 pixels, all of class 0.
idx_set() {
	mkdir "$1"
	bytes "$1/train-images-idx3-ubyte" 00 00 08 03 00 00 00 10 00 00 00 10 00 00 00 10
	bytes "$1/t10k-images-idx3-ubyte" 00 00 08 03 00 00 00 04 00 00 00 10 00 00 00 10
	bytes "$1/train-labels-idx1-ubyte" 00 00 08 01 00 00 00 10
	bytes "$1/t10k-labels-idx1-ubyte" 00 00 08 01 00 00 00 04
	head -c 4096 /dev/zero >>"$1/train-images-idx3-ubyte"
	head -c 1024 /dev/zero >>"$1/t10k-images-idx3-ubyte"
	head -c 16 /dev/zero >>"$1/train-labels-idx1-ubyte"
	head -c 4 /dev/zero >>"$1/t10k-labels-idx1-ubyte"
}

# poke FILE BYTE 0a: replaces one byte.
poke() {
	printf "\\x$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# plain WAY <TEXT: what the way adds is taken away.
plain() {
	local clean='/^mural: starting 2 ranks: /d; s/^mural: rank [0-9]+( of [0-9]+)?: /mural: /'
	if [ "$1" = mpirun ]; then # Mural's words are lines that begin so and indented ones behind them
		sed -E "$clean" | awk '/^mural: /{on=1; print; next} /^       /&&on{print; next} {on=0}'
	else
		sed -E "$clean"
	fi
}

# matches PATTERNS TEXT: line by line.
matches() {
	awk -v patterns="$1" '
		BEGIN { while ((getline line < patterns) > 0) pattern[++n] = line }
		{ text[++lines] = $0 }
		function fits(p, t) {
			if (p > n) return t > lines
			if (pattern[p] == "...") return fits(p + 1, t) || (t <= lines && fits(p, t + 1))
			return t <= lines && text[t] ~ ("^(" pattern[p] ")$") && fits(p + 1, t + 1)
		}
		END { exit !fits(1, 1) }' "$2"
}

problem() {
	echo "$name ($way): $1"
	shift
	[ $# -eq 0 ] || cat "$@"
	bad=1
}

check_output() { # stdout | stderr
	local want=$cases/$name/$1
	[ -f "$want" ] || want=/dev/null
	matches "$want" "$work/$1" || problem "$1 is not as expected; expected:" "$want" <(echo "found:") "$work/$1"
}

check_files() {
	local entry
	while read -r entry; do
		case $entry in
		'!*') [ -z "$(ls -A "$work/folder")" ] || problem "files were left:" <(ls -AR "$work/folder") ;;
		!*) [ ! -e "$work/folder/${entry#!}" ] || problem "${entry#!} is there" ;;
		*) [ -e "$work/folder/$entry" ] || problem "$entry is not there" <(ls -AR "$work/folder") ;;
		esac
	done <"$cases/$name/files"
}

run_case() {
	local code wanted=0
	bad=0
	run='' ranks=''
	[ "$way" != ranks ] || ranks='--ranks 2'
	[ "$way" != mpirun ] || run='mpirun -n 2'
	rm -rf "$work/folder"
	mkdir "$work/folder"
	[ ! -f "$cases/$name/exit" ] || read -r wanted <"$cases/$name/exit"
	# shellcheck source=/dev/null
	(cd "$work/folder" && . "$cases/$name/command") >"$work/raw.stdout" 2>"$work/raw.stderr"
	code=$?
	plain "$way" <"$work/raw.stderr" >"$work/stderr"
	cp "$work/raw.stdout" "$work/stdout"
	[ $code = "$wanted" ] || problem "exit code $code, expected $wanted" "$work/raw.stderr"
	check_output stdout
	check_output stderr
	[ ! -f "$cases/$name/files" ] || check_files
	[ -z "$(find "$work" -maxdepth 1 -name 'mural-*')" ] || problem "a temporary folder was left"
	rm -rf "$work"/mural-*
	failures=$((failures + bad))
	done=$((done + 1))
}

cases=$here/cases
have_mpi=1
command -v mpirun >/dev/null && [ -f "$MURAL_MODULE_PATH/mural_comm_mpi.so" ] || have_mpi=0
failures=0 done=0 passed_over=0
names=("$@")
if [ $# = 0 ]; then
	for folder in "$cases"/*/; do
		names+=("$(basename "$folder")")
	done
fi
for name in "${names[@]}"; do
	ways='alone ranks'
	[ ! -f "$cases/$name/ways" ] || read -r ways <"$cases/$name/ways"
	for way in $ways; do
		if [ "$way" != alone ] && [ $have_mpi = 0 ]; then
			passed_over=$((passed_over + 1))
			continue
		fi
		run_case
	done
done
[ $passed_over = 0 ] || echo "passed over: $passed_over runs that need mpirun and a Mural built with MPI"
echo "$done runs, $failures failed"
[ "$failures" = 0 ]
