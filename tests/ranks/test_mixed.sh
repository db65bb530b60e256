#!/usr/bin/env bash
# Ranks on pretend cards, and on processors beside them: the same gradients and losses as on processors alone; who gets which card;
# checkpoints that travel; a card that fails.
# SPDX-License-Identifier: MIT
set -euo pipefail
program=$1
# shellcheck source=../support/mpi.sh
source "$(dirname "$0")/../support/mpi.sh"
mkdir "$work/modules"
ln -s "$bin/../lib/test/pretend_card.so" "$work/modules/mural_cuda.so"
ln -s "$bin/../lib/test/fake_nvml.so" "$work/modules/libcuda.so.1" # a driver is there: any library will do
export MURAL_MODULE_PATH=$work/modules:$MURAL_MODULE_PATH
export LD_LIBRARY_PATH=$work/modules${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

ranks() {
	local n=$1 verb=$2
	shift 2
	mpirun -n "$n" "$bin/programs/invariance" "$verb" "$@"
}

# Two hundred steps of a free run take minutes under a sanitizer.
check=check
[ -z "${MURAL_SANITIZE:-}" ] || check=gradients

"$bin/programs/invariance" dump "$work" --micro-batch 24 --threads 1 --ops cpu
ranks 3 $check "$work" --micro-batch 4 --threads 1 --ops mixed
# operations that round otherwise, on the card and beside it
PRETEND_CARD_REFERENCE=1 ranks 2 $check "$work" --micro-batch 6 --threads 1 --ops cpu,cuda

# cards that compute as processors do: the same bits
ranks 2 begin --micro-batch 12 --threads 1 --ops cpu >"$work/processors"
for ops in cuda,cpu auto "cuda:0 --no-overlap-comm"; do
	# shellcheck disable=SC2086
	ranks 2 begin --micro-batch 12 --threads 1 --ops $ops >"$work/cards"
	cmp "$work/processors" "$work/cards"
done
echo "cards and processors: the same bits"

train() {
	local n=$1
	shift
	mpirun -n "$n" "$program" train --model mu --image-size 16 --patch 8 --channels 1 --classes 4 --threads 1 --quiet \
		--data synthetic --synthetic-images 32 --lr 1e-3 "$@" >"$work/out" 2>&1
}
refused() {
	local pattern=$1
	shift
	! train "$@" || fail "train $* was not refused"
	grep -qE -- "$pattern" "$work/out" || { cat "$work/out"; fail "train $* is not refused with '$pattern'"; }
}
refused 'has 3 ranks for 2 GPUs: start 2 there' 3 --batch 12 --ops auto
refused 'has 3 ranks for 2 GPUs: start 2 there' 3 --batch 12 --ops cuda
refused 'rank 1 is to use GPU 2 of host .* and sees 2 GPUs' 2 --batch 12 --ops cpu,cuda:2
refused 'one for each of 2 ranks, got 3' 2 --batch 12 --ops cpu,cuda,cuda
PRETEND_CARDS=0 refused 'there is no pretend card' 2 --batch 12 --ops cuda
PRETEND_CARDS=0 refused 'nothing to mix' 2 --batch 12 --ops mixed

# begun on a card beside a processor, gone on with on processors, and back
last_loss() {
	tail -n 1 "$1/steps.csv" | cut -d , -f 3
}
both=(--batch 8 --epochs 6 --checkpoint-every 2)
train 2 "${both[@]}" --ops cpu --run-dir "$work/whole"
train 2 "${both[@]}" --ops cuda,cpu --run-dir "$work/parts" --max-steps 8
train 2 "${both[@]}" --ops cpu --resume "$work/parts" --max-steps 16
train 2 "${both[@]}" --ops cpu,cuda --resume "$work/parts"
[ "$(last_loss "$work/whole")" = "$(last_loss "$work/parts")" ] ||
	fail "losses $(last_loss "$work/whole") and $(last_loss "$work/parts")"

# one rank's card fails in the middle of a step: both stop, and one says why
! mpirun -n 1 -x PRETEND_CARD_FAILS_AT=700 "$bin/programs/invariance" losses --micro-batch 12 --threads 1 --ops cuda,cpu \
	: -n 1 "$bin/programs/invariance" losses --micro-batch 12 --threads 1 --ops cuda,cpu >"$work/out" 2>&1 ||
	fail 'a run on a card that failed'
grep -q 'fell off the bus' "$work/out" || { cat "$work/out"; fail 'no word of the card'; }

# a slow card gets fewer images
PRETEND_CARD_IMAGE_US=4000 train 2 --batch 16 --epochs 30 --synthetic-images 64 --balance auto --ops cuda,cpu --run-dir "$work/slow"
tail -n 1 "$work/slow/balance.csv" | awk -F, '{ split($3, share, " "); exit !(share[1] < 4 && share[1] + share[2] == 16) }' ||
	{ cat "$work/slow/balance.csv"; fail 'a slow card with as many images as before'; }
