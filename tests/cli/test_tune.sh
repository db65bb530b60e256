#!/usr/bin/env bash
# mural tune: tries, chooses, writes the user's configuration with the choice in it, goes on where it stopped; and what it says when it
# cannot. SPDX-License-Identifier: MIT
set -euo pipefail
mural=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
	echo "$1" >&2
	exit 1
}

cat >ds.json <<'END'
# mine
{
  train_batch_size: 16  # stays
  "optimizer": { "type": "SGD", "params": { "lr": 0.1 } }
  mural: {
    model: "mu", image_size: 8, patch: 4, channels: 1, classes: 4
    data: { path: "synthetic", synthetic_images: 64 }
  }
}
END
cp ds.json ds.kept

tune() {
	"$mural" tune "$@" >out 2>err || return $?
}
short=(--trial-seconds 0.01 --warm-up 1)

tune --config ds.json --folder t --ranks 1 --threads 1 "${short[@]}" --result copy.json || fail "tune: $(cat out err)"
cmp ds.json ds.kept || fail 'the user'\''s file was touched'
grep -Eq '^1 rank x 1 thread, micro-batch [0-9]+ x [0-9]+ +[0-9.]+ \+- [0-9.]+ +[0-9.]+$' out || fail "no table: $(cat out)"
grep -q '^chosen: 1 rank x 1 thread, micro-batch' out && grep -q '^  - ' out || fail "no choice: $(cat out)"
grep -q '^written: t/tuned.json; to train with it: mural train --config t/tuned.json --ranks 1$' out || fail "not told: $(cat out)"
grep -q '"chosen": {"ranks": 1,' copy.json || fail "result: $(cat copy.json)"
cmp -s copy.json t/tune.json || fail 'the copy differs'
[ -z "$(find t/trials -name '*.safetensors')" ] || fail 'a trial wrote weights'

# the file is the user's: comments and other keys, and what was tuned
grep -q '^# mine$' t/tuned.json && grep -q 'train_batch_size: 16  # stays' t/tuned.json || fail "tuned.json: $(cat t/tuned.json)"
"$mural" train --config t/tuned.json --show-config >shown || fail 'tuned.json does not read'
micro=$(sed -n 's/.*"train_micro_batch_size_per_gpu": \([0-9]*\),.*/\1/p' shown)
times=$(sed -n 's/.*"gradient_accumulation_steps": \([0-9]*\),.*/\1/p' shown)
[ $((micro * times)) = 16 ] || fail "tuned.json: $micro x $times"
grep -q '"threads": 1,.*tuned.json' shown || fail 'tuned.json says no threads'
"$mural" train --config t/tuned.json --quiet --run-dir r >/dev/null || fail 'tuned.json does not train'

# the same command measures nothing again
cp t/tune.json before.json
tune --config ds.json --folder t --ranks 1 --threads 1 "${short[@]}" || fail "again: $(cat out err)"
[ "$(grep -c 'measured before' out)" = "$(grep -c ' +- ' out)" ] || fail "again: $(cat out)"
diff <(sed '/"date"/d; s/"reused": *[a-z]*//' before.json) <(sed '/"date"/d; s/"reused": *[a-z]*//' t/tune.json) >differs || fail "again: $(cat differs)"

# Ctrl-C: the code of a stop, what was measured stays, and the same command goes on
"$mural" tune --config ds.json --folder c --ranks 1 --threads 1 --trial-seconds 0.3 --warm-up 1 >out 2>err &
for _ in $(seq 600); do
	! grep -q ' +- ' out || break
	sleep 0.1
done
kill -INT $!
code=0
wait $! || code=$?
[ $code = 4 ] || fail "stopped: exit code $code: $(cat out err)"
grep -q '^best so far: 1 rank' out && [ "$(grep -c '^mural: ' err)" = 1 ] && grep -q 'goes on' err || fail "stopped: $(cat out err)"
grep -q '"chosen": {' c/tune.json && [ ! -e c/tuned.json ] || fail 'stopped: the files are wrong'
tune --config ds.json --folder c --ranks 1 --threads 1 --trial-seconds 0.3 --warm-up 1 || fail "going on: $(cat out err)"
[ "$(grep -c 'measured before' out)" -ge 1 ] && [ -e c/tuned.json ] || fail "going on: $(cat out)"

# what the command line says goes into the file; --json prints the result alone
tune --config ds.json --folder j --ranks 1 --threads 1 --micro-range 8:16 --lr 0.25 --json "${short[@]}" || fail "json: $(cat out err)"
[ "$(head -c 1 out)" = '{' ] && grep -q '"settled"' out || fail "json: $(head out)"
grep -q '"lr": 0.25' j/tuned.json || fail "an argument is not in the file: $(cat j/tuned.json)"

# a range of batches, no file
tune --folder b --ranks 1 --threads 1 --batch-range 8:16 --micro-range 8:8 --model mu --image-size 8 --patch 4 --channels 1 --classes 4 \
	--data synthetic --synthetic-images 64 "${short[@]}" --output b.json || fail "batches: $(cat out err)"
"$mural" train --config b.json --quiet --run-dir r2 >/dev/null || fail 'b.json does not train'

# a file that every trial stumbles over: three are enough
code=0
tune --config ds.json --folder f --ranks 1 --threads 1 --init-weights nowhere.safetensors "${short[@]}" || code=$?
[ $code != 0 ] && [ "$(grep -c '^mural: ' err)" = 1 ] || fail "failing trials: exit code $code: $(cat out err)"

# usage EXIT PATTERN ARGUMENT...: one message, and no folder
usage() {
	local want=$1 pattern=$2 code=0
	shift 2
	tune --folder x "$@" || code=$?
	[ $code = "$want" ] || fail "tune $*: exit code $code: $(cat err)"
	[ "$(grep -c '^mural: ' err)" = 1 ] && grep -q "$pattern" err || fail "tune $*: $(cat err)"
	[ ! -e x/trials ] || fail "tune $* made trials"
}
file=(--config ds.json --ranks 1 --threads 1)
usage 2 'does not begin above its end' "${file[@]}" --micro-range 8:4
usage 2 'LOW:HIGH' "${file[@]}" --micro-range 8
usage 2 'expected it without --batch, got both' "${file[@]}" --batch-range 8:16 --batch 8
usage 2 'no micro-batch from 3 to 3 divides' "${file[@]}" --micro-range 3:3
usage 2 'more than the training set' "${file[@]}" --batch-range 128:256
usage 2 'mural tune sets it for each' "${file[@]}" --micro-batch 8
usage 2 'mural tune sets it for each' "${file[@]}" --hostfile hosts
usage 2 'a size such as' "${file[@]}" --memory-limit lots
usage 2 'a number above 0' "${file[@]}" --budget 0
usage 2 "is within the" --config ds.json --ranks 1 --threads 100000
touch empty.json
usage 2 'got neither' --config empty.json --ranks 1
usage 2 'once only' --config /dev/null --ranks 1
usage 2 'ds.broken:2' --config ds.broken --ranks 1 <<<"$(printf '{\n train_batch_size: x16\n}\n' >ds.broken)"
usage 1 'no configuration fits' "${file[@]}" --memory-limit 1K
usage 1 'tuned.json' "${file[@]}" --output /proc/tuned.json
usage 3 'nowhere' "${file[@]}" --data nowhere

"$mural" tune --help | grep -q -- '--memory-limit SIZE' || fail 'no help'
