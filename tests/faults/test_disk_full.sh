#!/bin/bash
# The disk is full before the run, in the middle of it, or at its end: exit code 1, one message that names the file, and nothing
# half-written under a final name or beside it. SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
export TMPDIR=$work
disk=$work/disk
mkdir "$disk"
if ! mount -t tmpfs -o size=256k tmpfs "$disk" 2>/dev/null; then
	echo "skipped: a small file system cannot be mounted here (that takes root)"
	exit 77
fi
trap 'umount "$disk"; rm -rf "$work"' EXIT

# fill LEAVE: all of the disk but LEAVE KiB.
fill() {
	dd if=/dev/zero of="$disk/filler" bs=1k 2>/dev/null
	truncate -s "-$1k" "$disk/filler"
}

# train FILE OPTIONS...: must fail for want of room for FILE.
train() {
	local file=$1
	shift
	timeout 60 "$program" train --data synthetic --synthetic-images 16 --model mu --image-size 16 --patch 8 --channels 1 \
		--classes 4 --batch 8 --threads 1 --quiet --eval-every 0 --run-dir "$disk/run" "$@" >"$work/out" 2>"$work/all"
	local code=$?
	[ $code = 1 ] || { cat "$work/all"; fail "$file: exit code $code, expected 1"; }
	said "$work/all" >"$work/err"
	expect '^mural: (rank 0 of 2: )?.*: No space left on device$' "$work/err"
	expect "^       $disk/run/$file$" "$work/err"
	[ "$(grep -vc '^       while ' "$work/err")" = 2 ] || { cat "$work/err"; fail "$file: more than one message"; }
	left=$(find "$disk/run" -type f ! -name config.json ! -name steps.csv ! -name metrics.csv ! -path '*/step-00000004/*' ! -name latest)
	[ -z "$left" ] || fail "$file: left behind: $left"
	[ -n "${KEEP:-}" ] || rm -rf "${disk:?}"/*
}

for ranks in "" "--ranks 2"; do
	fill 0
	train config.json $ranks
	fill 40
	train '(steps|metrics).csv' --epochs 100000 --checkpoint-epochs 0 $ranks
	train weights.safetensors --depth 16 --checkpoint-epochs 0 $ranks
	# The second checkpoint does not fit any more; the first one stays, and the run can go on from it.
	umount "$disk"
	mount -t tmpfs -o size=260k tmpfs "$disk"
	KEEP=1 train 'checkpoints/step-00000008.part/(optimizer|model).safetensors' --checkpoint-every 4 --checkpoint-epochs 0 --epochs 6 --keep 9 $ranks
	expect 'while writing the checkpoint of step 8; earlier ones are as they were' "$work/all"
	mural_train="--data synthetic --synthetic-images 16 --model mu --image-size 16 --patch 8 --channels 1 --classes 4 --batch 8"
	# shellcheck disable=SC2086
	timeout 60 "$program" train $mural_train --threads 1 --quiet --eval-every 0 --epochs 6 --resume "$disk/run" --run-dir "$work/more" \
		$ranks >"$work/out" 2>"$work/err" || { cat "$work/err"; fail "the earlier checkpoint cannot be used"; }
	rm -rf "$disk/run" "$work/more"
	umount "$disk"
	mount -t tmpfs -o size=256k tmpfs "$disk"
done
exit 0
