#!/usr/bin/env bash
# Makes the seeds of every fuzz target: FOLDER/NAME/... for tests/fuzz/fuzz_NAME.c. They come from the files that other
# tests keep, with the bytes in front that a target wants, and from tests/fuzz/corpus/NAME, where findings stay.
# SPDX-License-Identifier: MIT
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: make_corpus.sh FOLDER" >&2 && exit 2; }
tests=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
cd "$1"

# seed NAME TITLE <BYTES
seed() {
	mkdir -p "$1"
	cat >"$1/$2"
}

# bytes 00 08 ...: as they are
bytes() {
	local byte
	for byte in "$@"; do
		printf "\\x$byte"
	done
}

# le64 N: eight bytes, the least significant first
le64() {
	local i hex
	printf -v hex '%016x' "$1"
	for i in 14 12 10 8 6 4 2 0; do
		printf "\\x${hex:i:2}"
	done
}

# Configuration files, as text and as configurations; the options behind them.
for name in hjson config; do
	for file in "$tests"/cases/ds-config/*.json "$tests"/cases/paper-ds_config.json "$tests"/../examples/*.json; do
		seed $name "$(basename "$file")" <"$file"
	done
	seed $name empty </dev/null
	printf '{a: 1e400, b: [1,,2], c: /* ' | seed $name unterminated
	printf '%0100d' 0 | tr 0 '[' | seed $name deep
done
printf '%s\0' --lr 1e-3 --betas 0.9,0.95 --image-size 28x28 --no-progress | seed options some
printf '%s\0' --schedule=cosine --warmup-epochs 0.5 --batch 64 --micro-batch 16 --precision bf16 | seed options schedule
printf '%s\0' --beta1 .9 --zero-stage 4 --data | seed options wrong

# Pictures as they are; CIFAR's pickles and records, and IDX files, with three bytes in front (see the targets).
for file in "$tests"/golden/pictures/*.{png,jpg,jpeg}; do
	seed image "$(basename "$file")" <"$file"
done
for folder in "$tests"/golden/cifar/*; do
	kind=02
	[[ $folder == *100* ]] && kind=03
	for file in "$folder"/*; do
		for flags in "$kind" "1${kind:1}"; do
			{
				bytes "$flags" ff ff
				cat "$file"
			} | seed cifar "$(basename "$folder")-$(basename "$file")-$flags"
		done
	done
done
for flags in 10 14 11 15; do
	{
		bytes $flags 00 00 03
		head -c 3072 /dev/zero
		bytes 09
		head -c 3072 /dev/zero
	} | seed cifar "records-$flags"
done
for flags in 00 02 04 07 10 18 1f; do
	{
		bytes $flags 18 00 00 00 08 03 00 00 00 02 00 00 00 02 00 00 00 02 00 01 02 03 04 05 06 07
		bytes 00 00 08 01 00 00 00 02 00 09
	} | seed idx "two-images-$flags"
done

# Tensors: files of the golden tests, and small ones, good and bad.
for file in "$tests"/golden/*.safetensors; do
	head -c 65536 "$file" | seed safetensors "$(basename "$file")"
done
tensors() { # TITLE HEADER BYTES
	{
		le64 ${#2}
		printf '%s' "$2"
		head -c "$3" /dev/zero
	} | seed safetensors "$1"
}
tensors one '{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}' 24
tensors scalar '{"__metadata__":{"format":"pt"},"s":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}}' 2
tensors nothing '{"w":{"dtype":"I64","shape":[0,9],"data_offsets":[0,0]}}' 0
tensors overlap '{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}' 6
tensors hole '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}' 3
tensors huge '{"w":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,8]}}' 8
le64 9223372036854775807 | seed safetensors long-header

# Checkpoints: byte 0 says which of the two files it is. The target closes the manifest with its checksum.
manifest() { # VERSION MORE SUM
	printf '\0{\n  "format": "mural-checkpoint",\n  "version": %s,\n  "step": 12,\n%s' "$1" "$2"
	printf '  "validation": {\n    "best_step": 12,\n    "metric": "top1",\n    "step": 12,\n    "loss": 0.5,\n'
	printf '    "top1": 0.75,\n    "top5": 1\n  },\n  "files": [\n    {\n'
	printf '      "name": "state.json",\n      "bytes": 9,\n      "%s": "0123456789abcdef"\n    }\n  ]' "$3"
}
manifest 2 '' xxh64 | seed checkpoint manifest-whole
manifest 3 $'  "piece_bytes": 1048576,\n' xxh64_of_pieces | seed checkpoint manifest
printf '\0{"format":"mural-checkpoint","version":1,"step":1e30,"files":[{"name":"../x","bytes":-1}]' |
	seed checkpoint manifest-bad
{
	validated='{"step": 12, "loss": 0.5, "top1": 0.75, "top5": 1}'
	printf '\1{"format": "mural-state", "version": 2, "step": 12, "updates_applied": 12, "updates_skipped": 0,'
	printf '"loss_scale": 65536, "clean_updates": 12, "hysteresis": 2, "epoch": 1,'
	printf '"validation": {"last": %s, "best": %s, "reference": %s, "waited": 0},' "$validated" "$validated" "$validated"
	printf '"step_in_epoch": 4, "ranks": 2, "must_match": {"model": "vit", "seed": "0"},'
	printf '"running_epoch": {"images": 32, "loss": 9.5, "top1": 8, "seconds": 1, "energy": {}},'
	printf '"totals": {"images": 96, "seconds": 3, "evaluation_seconds": 1, "train_loss": 1, "train_accuracy": 0.5,'
	printf '"test_loss": null, "test_accuracy": null, "test_top5": null}, "phase_seconds": {"data": 0, "forward": 1,'
	printf '"backward": 1, "communication_exposed": 0, "communication_hidden": 0, "optimizer": 0}, "epochs": ['
	printf '{"epoch": 1, "train_loss": 2, "train_accuracy": 0.25, "validation_loss": 2, "validation_accuracy": 0.5,'
	printf '"test_loss": null, "test_accuracy": null,'
	printf '"seconds": 2}]}'
} | seed checkpoint state

# Clusters as they are; host files behind a filter and a NUL.
seed cluster rates <<'END'
{ "devices": { "cpu": { "rates": [
  { "precision": "bf16", "ranks": 2, "s_per_tflop": 7.6, "ns_per_value": 0.7, "us_per_unit": 3, "wait_share": 0.1 },
  { "model": "m", "gflop_per_image": 3, "parameters": 5e6, "seconds_per_image": 0.1, "loader_us_per_image": 9 } ] } },
  "links": { "m": { "gb_per_s": 2 } }, "nodes": [ { "devices": { "cpu": 4 }, "inside": "m" } ] }
END
for file in "$tests"/../examples/clusters/*.json; do
	seed cluster "$(basename "$file")" <"$file"
done
printf 'worker-1@worker-2:0,2\0# two hosts\nworker-1 slots=4\nworker-2 slots=4\n' | seed hosts filtered
printf '\0worker-1 slots=2\n\nworker-1 slots=2\n' | seed hosts twice
printf 'worker:\0worker slots=\n' | seed hosts torn

# Tables that a resumed run cuts: byte 0 is the column, byte 1 the last number to keep.
printf '\0\2step,loss\n1,0.5\n2,0.25\n3,0.125\n' | seed csv three-rows
printf '\1\2a,"b\n1,2' | seed csv torn

# Weights: whole files, pickles and arrays of the golden tests with a byte in front; tensors with the files beside them.
for file in "$tests"/golden/weights/*/*.pth; do
	{
		bytes 00
		cat "$file"
	} | seed pth "$(basename "$(dirname "$file")")-$(basename "$file")"
done
printf '\1\x80\x02}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0%bX\3\0\0\0cpuK\x10tQK\0K\2K\3\x86K\3K\1\x86\x89%bRs.' \
	0 'ccollections\nOrderedDict\n)Rt' | seed pth one-tensor
printf '\1\x80\x02ccollections\nOrderedDict\nq\0)Rq\1(X\5\0\0\0modelq\2}q\3X\5\0\0\0epochK\3uh\1h\3b.' | seed pth wrapper
printf '\1\x80\x02cargparse\nNamespace\n)\x81}X\1\0\0\0aG\x3f\xf0\0\0\0\0\0\0sb.' | seed pth namespace
printf '\1\x80\x02cos\nsystem\nX\2\0\0\0ls\x85R.' | seed pth system
for file in "$tests"/golden/weights/*.npz; do
	{
		bytes 00
		cat "$file"
	} | seed npz "$(basename "$file")"
done
for mode in 1 2; do
	printf "\\$mode\x93NUMPY\1\0\x3b\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }  \n%b" '\0\0\0\0\0\0\0\0' | seed npz "array-$mode"
done
printf '\3\x08\0\xcb\x48\xcd\xc9\xc9\x07\0' | seed npz deflated
for folder in "$tests"/golden/weights/timm "$tests"/golden/weights/timm_mean "$tests"/golden/weights/huggingface5; do
	config=$(stat -c %s "$folder/config.json")
	for flags in 00 01; do
		{
			bytes "$(printf '%02x' $((config % 256)))" "$(printf '%02x' $((config / 256)))" $flags
			cat "$folder/config.json" "$folder/model.safetensors"
		} | seed weights "$(basename "$folder")-$flags"
	done
done
{
	bytes 00 00 00
	cat "$tests/golden/weights/torchvision.safetensors"
} | seed weights torchvision

# Reports: parts with form feeds between them.
steps=step,epoch,loss,learning_rate,gradient_norm,images,data_seconds,forward_seconds,backward_seconds,communication_exposed_seconds,communication_hidden_seconds,optimizer_seconds
result='{"model": "mu", "ranks": 2, "load": {"slowest_rank": 1, "slowest_seconds": 2, "mean_seconds": 1}, "memory_used_bytes": {"parameters": 1048576, "loader": 7}, "epochs": [{"epoch": 1, "train_loss": 2, "test_accuracy": 0.5}, {"epoch": 2, "train_loss": 1, "test_accuracy": 0.6}]}'
for kind in strong weak batch accumulation placement precision optimizer; do
	{
		printf '{"study": "%s", "environment": {"host": "h", "cores": 2}, "arguments": ["--lr", "1 2"], "rounds": 2, "steps": 0, "points": [' $kind
		for ranks in 1 2; do
			printf '{"name": "p", "ranks": %d, "batch_per_rank": 8, "accumulation": 1, "precision": "fp32", "optimizer": "SGD", "several_nodes": true, "rounds_measured": 1, "step_seconds": 0.5, "forward_seconds": 0.1, "backward_seconds": 0.2, "communication_exposed_seconds": 0.2, "communication_hidden_seconds": 0.1, "images_per_second": 30, "epoch_seconds": 3, "train_accuracy": 0.3, "speed_up": 1.5, "speed_up_low": 1, "speed_up_high": 2, "efficiency": 0.7, "serial_fraction": 0.1, "communication_fraction": 0.4}%s' $ranks "$([ $ranks = 2 ] || echo ,)"
		done
		printf ']}\fpoint,round,status,words\np,2,failed,"mural: <no>"\n\f%s\f%s\n' "$result" "$steps"
		for step in $(seq 24); do
			echo "$step,1,0.$step,1,1,16,0.1,0.2,0.3,0.4,0.1,0.1"
		done
		printf '\f\f</defs><g stroke-width="2"><path stroke='\''rgb(42, 111, 219)'\'' d='\''M1,2 L3,4'\''/><polygon fill = '\''rgb(217,102,43)'\'' points = '\''1,2 3,4'\''/></g>'
	} | seed report $kind
done
{
	printf '\f\f\f%s\n1,1,nan,1,1,16,0,0,0,0,0,0\n2,1,1,1,1\n\fstep,epoch,loss,accuracy,top5,best,seconds\n1,1,1,0.5,1,1,1\n' "$steps"
} | seed report torn

for folder in "$tests"/fuzz/corpus/*/; do
	[ -d "$folder" ] || continue
	mkdir -p "$(basename "$folder")"
	cp "$folder"* "$(basename "$folder")/"
done
