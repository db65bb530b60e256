#!/usr/bin/env bash
# The house keeps its floors: reads the #include lines of src/ and include/.
#   1. A lower floor never includes an upper one; siblings meet only through the headers named here (docs/tour.md).
#   2. An outside library is included in one place only.
#   3. The program includes the public headers and its own, nothing else.
#   4. Every header compiles alone; the public ones in C++ as well.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "${MURAL_SOURCE:-$(dirname "$0")/../..}"
failures=0

complain() {
	echo "$1" >&2
	failures=$((failures + 1))
}

# "FILE LINE HEADER" for each #include "HEADER" or <HEADER> under the folders given.
# shellcheck disable=SC2016 # awk's own dollar
includes() {
	find "$@" \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z |
		xargs -0 awk -F '[<">]' '/^[ \t]*#[ \t]*include[ \t]*["<]/ { print FILENAME, FNR, $2 }'
}

# What a folder of src/ may include besides itself: folders, single headers, and mural/ headers by name.
allowed() {
	case $1 in
	base) echo 'mural/error.h' ;;
	device) echo 'base/' ;;
	comm) echo 'base/ mural/error.h mural/comm.h mural/hosts.h' ;;
	kernels) echo 'base/ device/device.h' ;;
	monitor) echo 'base/' ;;
	data) echo 'base/ device/device.h kernels/ops.h mural/error.h mural/data.h' ;;
	model) echo 'base/ device/device.h kernels/ops.h mural/error.h mural/model.h' ;;
	weights) echo 'base/ data/class_names.h device/device.h kernels/ops.h model/ mural/' ;;
	optim) echo 'base/ device/device.h kernels/ops.h model/unit.h mural/error.h mural/config.h' ;;
	engine) echo 'base/ device/device.h comm/comm.h comm/emulated.h comm/link.h comm/observed.h comm/log.h kernels/ops.h kernels/cuda.h monitor/ data/ model/ weights/ optim/ mural/' ;;
	study) echo 'base/ monitor/ engine/ mural/' ;;
	library.c) echo 'base/ mural/' ;;
	*) echo 'none' ;;
	esac
}

# Single meetings outside those rules, each with its reason.
#   src/engine/info.c tells which libraries work, so it asks the doors to them.
#   CUDA's operations work on its device's streams: both are one module.
exceptions='
src/engine/info.c comm/module.h
src/engine/info.c kernels/cpu/dnnl.h
src/engine/info.c kernels/cuda.h
src/kernels/cuda/cuda.h device/cuda/cuda.h
'

may_include() {
	local file=$1 folder=$2 header=$3 pattern
	case $header in
	"$folder"/*) return 0 ;;
	esac
	for pattern in $(allowed "$folder"); do
		case $pattern in
		*/) [[ $header != "$pattern"* ]] || return 0 ;;
		*) [ "$header" != "$pattern" ] || return 0 ;;
		esac
	done
	[[ $exceptions == *$'\n'"$file $header"$'\n'* ]]
}

# A header of ours is one that exists in src/ or include/; a bare name is looked for beside the file.
while read -r file line header; do
	folder=${file#src/}
	folder=${folder%%/*}
	if [ "$folder" = cli ]; then
		[[ $header == mural/* || -e src/cli/$header || (! -e src/$header && ! -e include/$header) ]] ||
			complain "$file:$line: the program may include only include/mural and its own headers, not \"$header\""
	elif [ -e "$(dirname "$file")/$header" ] || [ -e "src/$header" ] || [ -e "include/$header" ]; then
		[ -e "src/$header" ] || [ -e "include/$header" ] || header=${file#src/} header=${header%/*}/
		may_include "$file" "$folder" "$header" ||
			complain "$file:$line: src/$folder may not include \"$header\" (allowed: $(allowed "$folder"))"
	fi
done < <(includes src)

# The reference is the yardstick: it knows no other implementation.
while read -r file line header; do
	[[ $header != kernels/cpu/* && $header != kernels/cuda/* ]] ||
		complain "$file:$line: the reference may not include \"$header\""
done < <([ ! -d src/kernels/reference ] || includes src/kernels/reference)

# Public headers: only each other and the C standard library.
while read -r file line header; do
	[[ $header == mural/* || $header =~ ^(stdbool|stddef|stdint|stdio|inttypes|limits)\.h$ ]] ||
		complain "$file:$line: a public header may not include <$header>"
done < <(includes include)

# header | the only place that may include it
while read -r outside place; do
	while read -r file line header; do
		# shellcheck disable=SC2053 # both are patterns
		[[ $header != $outside || $file == $place ]] ||
			complain "$file:$line: <$header> may be included only in $place"
	done < <(includes src)
done <<'END'
mpi.h src/comm/mpi/*
oneapi/dnnl/* src/kernels/cpu/dnnl*
dnnl*.h src/kernels/cpu/dnnl*
omp.h src/kernels/cpu/*
zlib.h src/@(data|weights)/*
cuda* src/*/cuda/*
cublas* src/kernels/cuda/gemm.h
END

# compiles LANGUAGE HEADER COMPILER [OPTION...]: a file with nothing but this #include, with warnings as errors.
compiles() {
	local language=$1 header=$2 output
	shift 2
	output=$(printf '#include "%s"\n' "$header" |
		"$@" -fsyntax-only -Wall -Wextra -Werror -Wno-unknown-pragmas -Wno-psabi -I include -I src -x "$language" - 2>&1) ||
		complain "$header does not compile alone in $language:"$'\n'"$output"
}

cc=$(command -v gcc || command -v clang || true)
cxx=$(command -v g++ || command -v clang++ || true)
[ -n "$cxx" ] || echo 'no C++ compiler: public headers were tried in C only'
while read -r header; do
	[ -z "$cc" ] || compiles c "$header" "$cc" -std=c17
	[ -z "$cxx" ] || compiles c++ "$header" "$cxx" -std=c++11
done < <(cd include && find mural -name '*.h' | sort)
# cmake/MuralCompiler.cmake gives these two to every source. The modules' headers need mpi.h or
# CUDA's, which are not everywhere.
while read -r header; do
	[ -z "$cc" ] || compiles c "$header" "$cc" -std=gnu17 -D_GNU_SOURCE
done < <(cd src && find . -name '*.h' ! -path './cli/*' ! -path './comm/mpi/*' ! -path './*/cuda/*' -printf '%P\n' | sort)

if [ $failures -gt 0 ]; then
	echo "$failures violations of the floors" >&2
	exit 1
fi
echo 'the floors hold'
