#!/usr/bin/env bash
# `mural info`: what it says, the same as JSON, parts that are missing, wrong usage.
# SPDX-License-Identifier: MIT
set -uo pipefail
mural=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

wrong() {
	echo "line ${BASH_LINENO[1]}: $1" >&2
	cat "$work/out" "$work/err" >&2
	failures=$((failures + 1))
}

run() {
	local expected=$1 code=0
	shift
	"$mural" info "$@" >"$work/out" 2>"$work/err" || code=$?
	[ $code -eq "$expected" ] || wrong "'mural info $*' ended with $code, not $expected"
}

# has FILE PATTERN
has() {
	grep -Eq -- "$2" "$work/$1" || wrong "$1 lacks '$2'"
}

run 0
has out '^mural [0-9]+\.[0-9]+\.[0-9]+$'
has out '^  compiler +(gcc|clang) [0-9]+'
has out '^  matrix products +(oneDNN [0-9]|plain loops)'
has out '^  bf16 products +(AMX|AVX512_BF16|widened to fp32: .)'
has out '^  image files +(PNG|JPEG|none)'
has out '^  cores +[1-9][0-9]* usable$'
has out '^  memory +[0-9.]+ GiB, [0-9.]+ GiB of it free$'
has out '^  MPI +.'
has out '^  GPU +(not used: .|[0-9]+ x .)' # which of them depends on the machine
has out '^  energy +.'
has out '^  fashion-mnist +.'
[ ! -s "$work/err" ] || wrong 'it wrote to standard error'

run 0 --result "$work/new/folder/info.json"
cp "$work/new/folder/info.json" "$work/json"
for key in mural_version compiler matrix_products bf16_products openmp host processor cores memory_bytes instructions mpi gpu energy fashion_mnist; do
	has json "^  \"$key\": "
done
has json '^  "cores": [1-9]'
[ "$(ls "$work/new/folder")" = info.json ] || wrong 'it left more than the result'
[ "$(tail -c 2 "$work/json")" = '}' ] || wrong 'the result is not whole'
"$mural" info --result=/dev/stdout | grep -c '^  "mural_version"' >"$work/out" || wrong '--result=/dev/stdout wrote nothing'

# A part that is missing says why and what to do, and is no failure.
MURAL_MODULE_PATH=$work/new run 0
mkdir "$work/broken"
echo 'not a module' >"$work/broken/mural_comm_mpi.so"
MURAL_MODULE_PATH=$work/broken run 0
has out '^  MPI +none: one rank only$'
has out '^ +-> the MPI module does not load: .*broken/mural_comm_mpi.so'

run 0 --help
has out '--result FILE'
run 2 --frobnicate
has err "unknown argument '--frobnicate'"
run 2 --result
has err 'argument --result: expected FILE, got nothing'
run 1 --result "$work/json/below"
has err 'cannot make the folder: Not a directory'

[ $failures -eq 0 ] && echo 'info says what it should'
[ $failures -eq 0 ]
