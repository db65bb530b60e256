#!/usr/bin/env bash
# A run on an emulated cluster with everything watched: the same losses as on real links, and files that say what was asked for.
# SPDX-License-Identifier: MIT
set -euo pipefail
program=$1
# shellcheck source=../support/mpi.sh
source "$(dirname "$0")/../support/mpi.sh"
cd "$work"

cat >cluster.json <<'END'
{ name: "mini", devices: { a: { seconds_per_image: 0.0001, seconds_per_batch: 0.1 } },
  links: { lan: { gb_per_s: 1, latency_us: 200 } },
  nodes: [ { count: 2, devices: { a: 1 }, uplink: "lan" } ] }
END
cat >watched.json <<'END'
{ train_batch_size: 16, steps_per_print: 4, wall_clock_breakdown: true, memory_breakdown: true,
  tensorboard: { enabled: true, job_name: "events" }, csv_monitor: { enabled: true, job_name: "curves" },
  comms_logger: { enabled: true }, flops_profiler: { enabled: true, profile_step: 2, output_file: "profile.txt" } }
END
train() {
	"$program" train --model mu --image-size 16 --patch 4 --channels 1 --classes 10 --width 32 --heads 2 --mlp-width 64 --depth 2 \
		--data synthetic --synthetic-images 128 --batch 16 --threads 1 --ranks 2 --seed 5 "$@"
}
losses() { cut -d, -f1-6 "$1/steps.csv"; }

train --quiet --run-dir plain >out 2>err || { cat err; fail "a plain run"; }
train --config watched.json --cluster cluster.json --timeline timeline.json --timeline-first 2 --timeline-steps 3 \
	--run-dir watched --checkpoint-every 4 >out 2>err || { cat err; fail "a watched run"; }
[ "$(losses plain)" = "$(losses watched)" ] || fail "watching or emulating changed the training"

expect '^time \(ms\) of steps 1-4: step [0-9.]+ \| data [0-9.]+ \| forward' err
expect '^memory (at the start|after the first step|after the epoch): planned' err 3
expect '^collective +size +count +total ms' err
expect '^all_reduce .* GiB|^all_reduce .* [KM]iB +' err
expect '^emulated: [0-9]+ collectives, ' err
expect '^timeline: [0-9]+ spans of 2 ranks in timeline.json, clocks aligned to [0-9]+ us$' err
expect '^profile of step 2: 8 images on this rank' profile.txt
expect '^block [01] ' profile.txt 2
[ "$(find watched/events -name '*tfevents*' | wc -l)" = 1 ] || fail "no event file"
[ "$(wc -l <watched/curves/Train_Samples_lr.csv)" = 9 ] || fail "curve of the learning rate"
[ "$(head -1 watched/curves/Test_Samples_test_accuracy.csv)" = step,test_accuracy ] || fail "header of a curve"
[ "$(tail -1 watched/curves/Train_Samples_lr.csv)" = 128,0.001 ] || fail "last point of a curve"
grep -q '"collectives": \[' watched/result.json && grep -q '"flops_profile": {' watched/result.json &&
	grep -q '"emulation": {' watched/result.json || fail "result.json lacks a part"
# two ranks, steps 2 to 4: a step's span each
[ "$(grep -o '"cat":"step"' timeline.json | wc -l)" = 6 ] || fail "steps in the timeline"
for rank in 0 1; do
	grep -q "\"pid\":$rank,\"tid\":1" timeline.json || fail "no communication of rank $rank"
done

# going on from step 4: curves are cut back to it, and event files add up
rm -r watched/checkpoints/step-*8
train --config watched.json --run-dir watched --resume auto >out 2>err || { cat err; fail "going on"; }
[ "$(losses plain)" = "$(losses watched)" ] || fail "the run that went on differs"
[ "$(wc -l <watched/curves/Train_Samples_lr.csv)" = 9 ] || fail "the curve that went on"
[ "$(find watched/events -name '*tfevents*' | wc -l)" = 2 ] || fail "no second event file"

# mistakes: one message, nothing trained
code=0
train --cluster nowhere.json --run-dir never >out 2>err || code=$?
[ $code = 2 ] || fail "exit code $code for a missing cluster file"
expect "cluster file" err
sed -i 's/gb_per_s: 1/gb_per_s: 0/' cluster.json
code=0
train --cluster cluster.json --run-dir never >out 2>err || code=$?
[ $code = 2 ] || fail "exit code $code for zero bandwidth"
expect 'cluster.json:2:[0-9]+: links.lan.gb_per_s' err
expect 'expected a number above 0, got 0' err
[ ! -e never/steps.csv ] || fail "a run began all the same"
echo "watched and emulated: the same training"
