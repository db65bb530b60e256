#!/usr/bin/env bash
# One command on a machine with a GPU: build, check, measure.
#
#   bench/gpu/run.sh [build] [check] [memcheck] [ops]      all four when none is named
#
#   build     configures and builds in MURAL_BUILD (default build/gpu) for this machine's card; skipped when not named
#   check     the tests of the CUDA module, which must not be skipped here
#   memcheck  compute-sanitizer over a few trials of every row (memcheck, then racecheck)
#   ops       every operation of a ViT-B/16 step: bf16 at 64 and 256 images, f32 at 64 (MODELS, IMAGES change that)
#
# MURAL_BUILD may hold a build made elsewhere: then name the steps without `build`. Each step prints its seconds.
# SPDX-License-Identifier: MIT
set -uo pipefail
cd "$(dirname "$0")/../.."
build=${MURAL_BUILD:-build/gpu}
steps=${*:-build check memcheck ops}
failed=0
export MURAL_MODULE_PATH=$PWD/$build/lib/mural MURAL_TEST_CUDA=require

step() {
	local name=$1 began=$SECONDS
	shift
	"$@"
	local status=$?
	[ $status -eq 0 ] || failed=1
	echo "== $name: exit $status, $((SECONDS - began)) s"
}

run_build() {
	local capability
	capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
	cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMURAL_WITH_CUDA=ON -DMURAL_WITH_MPI=OFF \
		-DMURAL_WITH_ONEDNN=OFF -DMURAL_CUDA_ARCHITECTURES="$capability" ${CMAKE_OPTIONS:-} >"$build.log" 2>&1 &&
		ninja -C "$build" mural_cuda kernels_test_differential kernels_test_cuda bench_gpu >>"$build.log" 2>&1 || { tail -30 "$build.log"; return 1; }
}

run_check() {
	MURAL_TEST_TABLE=cuda "$build/bin/kernels_test_differential" && "$build/bin/kernels_test_cuda"
}

run_memcheck() {
	local tool
	for tool in memcheck racecheck; do
		MURAL_TEST_TABLE=cuda MURAL_TEST_CASES=${MEMCHECK_CASES:-3} \
			compute-sanitizer --tool $tool --error-exitcode 9 "$build/bin/kernels_test_differential" | tail -12 || return 1
	done
}

run_ops() {
	local model images
	for model in ${MODELS:-vit_b_16}; do
		for images in ${IMAGES:-64 256}; do
			"$build/bin/bench_gpu" "$images" bf16 "$model" || return 1
		done
		"$build/bin/bench_gpu" 64 f32 "$model" || return 1
	done
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
mkdir -p "$(dirname "$build")"
for name in $steps; do
	case $name in
	build | check | memcheck | ops) step "$name" "run_$name" ;;
	*)
		echo "usage: bench/gpu/run.sh [build] [check] [memcheck] [ops]" >&2
		exit 2
		;;
	esac
done
exit $failed
