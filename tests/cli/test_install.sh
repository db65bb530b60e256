#!/usr/bin/env bash
# What `make install` leaves works from another place: the program, its modules, and the library from a C program.
# SPDX-License-Identifier: MIT
set -euo pipefail
build=$(cd "$(dirname "$1")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset MURAL_MODULE_PATH
prefix=$work/prefix

fail() {
	echo "FAILED: $1" >&2
	exit 1
}

cmake --install "$build" --prefix "$prefix" >"$work/log" || { cat "$work/log"; fail 'cmake --install'; }
find "$build" -maxdepth 3 -name mural_comm_mpi.so | grep -q . && has_mpi=yes || has_mpi=no
mv "$prefix" "$work/moved" # nothing may depend on the place that was named
prefix=$work/moved

"$prefix/bin/mural" info >"$work/info" || fail 'the installed program does not run'
if [ $has_mpi = yes ] && command -v mpirun >/dev/null; then
	grep -q 'module "[a-z]*" found and loaded' "$work/info" || fail 'the installed program finds no MPI module'
fi
[ -f "$prefix/share/mural/examples/demo.json" ] || fail 'the examples are missing'

# What belongs to other programs is where they look for it.
for file in man/man1/mural-train.1 man/man5/mural-config.5 bash-completion/completions/mural \
	zsh/vendor-completions/_mural fish/vendor_completions.d/mural.fish; do
	[ -s "$prefix/share/$file" ] || fail "share/$file is missing"
done

# Public headers compile alone, in C and in C++, with nothing but the prefix.
for header in "$prefix"/include/mural/*.h; do
	echo "#include <mural/$(basename "$header")>" >"$work/alone.c"
	cc -std=c17 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -fsyntax-only "$work/alone.c" ||
		fail "$(basename "$header") does not compile alone in C"
	command -v c++ >/dev/null || continue
	c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -x c++ -fsyntax-only "$work/alone.c" ||
		fail "$(basename "$header") does not compile alone in C++"
done

# A program that links a sanitized library has to begin with the sanitizer.
grep -q '^MURAL_SANITIZE:[A-Z]*=$' "$build/CMakeCache.txt" || { echo 'sanitizers: no C program was tried'; exit 0; }
library=$(dirname "$(find "$prefix" -name libmural.so)")
grep -q '^Libs: .*-lmural$' "$library/pkgconfig/mural.pc" || fail 'mural.pc names no library'
if command -v pkg-config >/dev/null; then
	read -ra flags < <(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags --libs mural)
else
	flags=("-I$prefix/include" "-L$library" -lmural)
fi

# examples/embed: a loop of its own over the library, found by pkg-config and by CMake.
embed=$prefix/share/mural/examples/embed
unset OMPI_COMM_WORLD_SIZE PMI_SIZE SLURM_STEP_NUM_TASKS
cc -std=c17 -Wall -Wextra -Werror "$embed/embed.c" "${flags[@]}" "-Wl,-rpath,$library" -o "$work/embed"
cmake -S "$embed" -B "$work/build" "-DCMAKE_PREFIX_PATH=$prefix" >"$work/log" 2>&1 && cmake --build "$work/build" >>"$work/log" 2>&1 ||
	{ cat "$work/log"; fail 'find_package(mural)'; }
for program in "$work/embed" "$work/build/embed"; do
	rm -f "$work/embed.safetensors"
	(cd "$work" && "$program") >"$work/out" 2>&1 || { cat "$work/out"; fail 'examples/embed'; }
	# It learns, and saves what it has learned.
	tail -n 1 "$work/out" | grep -Eq '^epoch [0-9]+: loss [0-9.]+, accuracy (0\.9[0-9]*|1\.0000) on [0-9]+ test images$' ||
		{ cat "$work/out"; fail 'examples/embed did not learn'; }
	[ -s "$work/embed.safetensors" ] || fail 'examples/embed saved no weights'
done

cc -std=c17 -Wall -Wextra -Werror "$prefix/share/mural/examples/train.c" "${flags[@]}" "-Wl,-rpath,$library" -o "$work/train"
"$work/train" --data synthetic --synthetic-images 32 --model mu --image-size 16 --patch 8 --channels 1 --classes 10 \
	--batch 16 --run-dir "$work/run" >"$work/out" 2>"$work/err" || { cat "$work/err"; fail 'the example in C'; }
grep -q "^test accuracy 0\.[0-9]*, in $work/run\$" "$work/out" || { cat "$work/out"; fail 'what the example in C says'; }
"$work/train" --lr fast 2>"$work/err" && fail 'a wrong option was accepted' || code=$?
[ "$code" -eq 2 ] || fail "a wrong option ended with $code"
grep -q -e '--lr' "$work/err" || { cat "$work/err"; fail 'the message does not name the option'; }
echo 'what was installed works'
