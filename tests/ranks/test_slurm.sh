#!/bin/bash
# srun starts the ranks, a job's signals make them stop well, and a job's script can start ranks in every way that the
# documentation shows. On a private Slurm of one node. SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
. "$(dirname "$0")/../support/slurm.sh"
examples=$(cd "$(dirname "$0")/../../examples" && pwd)
export TMPDIR=$work OMP_NUM_THREADS=1
case $flavour in
openmpi) right=pmix wrong=pmi2 ;;
*) right=pmi2 wrong=pmix ;;
esac
slurm_start 4
srun --mpi=list 2>&1 | grep -qw "$right" || {
	echo "skipped: this Slurm has no --mpi=$right (Debian, Ubuntu: slurm-wlm-basic-plugins)"
	exit 77
}
task="--data synthetic --synthetic-images 64 --model mu --image-size 16 --patch 8 --channels 1 --classes 4 --batch 8"
task="$task --threads 1 --seed 7 --eval-every 0"
long="$task --quiet --epochs 10000000 --checkpoint-epochs 0 --checkpoint-every 1000000"

losses() {
	cut -d , -f 1-2 "$1/steps.csv"
}
# Everybody's number: of ranks on the line that names the model.
ranks_of() {
	sed -n 's/.* \([0-9]*\) ranks x .*/\1/p' "$1"
}

# The same training as under mpirun, bit for bit.
mpirun -n 2 "$program" train $task --epochs 2 --run-dir "$work/plain" >"$work/out" 2>&1 || { cat "$work/out"; fail "mpirun"; }
timeout 60 srun --mpi=$right -n 2 "$program" train $task --epochs 2 --run-dir "$work/srun" >"$work/out" 2>&1 ||
	{ cat "$work/out"; fail "srun --mpi=$right"; }
[ "$(ranks_of "$work/out")" = 2 ] || { cat "$work/out"; fail "not two ranks"; }
cmp <(losses "$work/plain") <(losses "$work/srun") || fail "losses under srun differ"

# srun says two, MPI says one: one message that names both and says what to type.
for type in none $wrong; do
	timeout 60 srun --mpi=$type -n 2 "$program" train $task --epochs 1 --run-dir "$work/alone" >"$work/out" 2>"$work/err"
	code=$?
	[ $code = 2 ] || { cat "$work/err"; fail "srun --mpi=$type: exit code $code"; }
	expect "^mural: srun started 2 ranks, but the MPI library that Mural uses \(.*\) sees 1: start it with \`srun --mpi=$right\`" \
		"$work/err"
	[ "$(grep -vc '^srun: ' "$work/err")" = 1 ] || { cat "$work/err"; fail "more than one message"; }
	[ ! -e "$work/alone" ] || fail "a run folder of a training that did not start"
done

# One rank needs no MPI.
timeout 60 srun --mpi=none -n 1 "$program" train $task --epochs 1 --run-dir "$work/one" >"$work/out" 2>&1 ||
	{ cat "$work/out"; fail "one rank"; }

# A study: a job for each run, and the same losses.
study="--data synthetic --synthetic-images 64 --model mu --image-size 16 --patch 8 --channels 1 --classes 4 --threads 1 --seed 7"
timeout 100 "$program" study placement --folder "$work/study" --slurm "--mpi=$right" --ranks 2 --batches 4 --rounds 1 --steps 3 \
	--warm-up 1 --placements pack $study >"$work/out" 2>&1 || { cat "$work/out" "$work"/study/points/*/log.txt; fail "study"; }
expect '^placement-r2-b4-fp32-pack,1,2,.*,measured,3,' "$work/study/study.csv"
expect '^--use-min-nodes$' "$work/study/points/placement-r2-b4-fp32-pack.1/command.txt"
cmp <(losses "$work/plain" | head -n 5) <(losses "$work/study/points/placement-r2-b4-fp32-pack.1") || fail "losses of the study differ"

# submit NAME OPTIONS... <script: sets job; its output goes to $work/NAME.log
submit() {
	local name=$1
	shift
	job=$(sbatch --parsable -o "$work/$name.log" --open-mode=append -D "$work" "$@") || fail "sbatch"
}
is_training() {
	[ -f "$work/$1/steps.csv" ] && [ "$(wc -l <"$work/$1/steps.csv")" -gt 3 ]
}
job_state() {
	scontrol -o show job "$job" | sed 's/.* JobState=\([A-Z]*\) .*/\1/'
}
job_is() {
	[ "$(job_state)" = "$1" ]
}
job_has_ended() {
	case $(job_state) in PENDING | RUNNING | COMPLETING) return 1 ;; esac
}
job_code() {
	scontrol -o show job "$job" | sed 's/.* ExitCode=\([0-9]*\):.*/\1/'
}
# finish NAME CODE
finish() {
	wait_for 60 job_has_ended || { cat "$work/$1.log"; fail "$1: the job did not end"; }
	[ "$(job_code)" = "$2" ] || { cat "$work/$1.log"; fail "$1: exit code $(job_code), expected $2"; }
}

# Slurm's warning before the limit, by hand: a checkpoint, exit code 4. Then the same job goes on from there.
for signal in USR1 TERM; do
	submit $signal -n 2 --wrap "srun --mpi=$right '$program' train $long --run-dir $work/$signal --resume-if-any"
	wait_for 60 is_training $signal || { cat "$work/$signal.log"; fail "the job does not train"; }
	scancel --signal=$signal "$job"
	finish $signal 4
	step=$(cat "$work/$signal/checkpoints/latest") || fail "no checkpoint after $signal"
done
submit again -n 2 --wrap "srun --mpi=$right '$program' train $long --run-dir $work/TERM --resume-if-any --max-steps $((10#${step#step-} + 8))"
finish again 0
expect "^$((10#${step#step-} + 8))," "$work/TERM/steps.csv"
expect "^$((10#${step#step-}))," "$work/TERM/steps.csv"

# The example: it puts itself back into the queue and goes on, until somebody does not want it to.
export MURAL=$program MURAL_SRUN_MPI=$right
submit example -n 2 -N 1 --ntasks-per-node 2 -c 2 "$examples/slurm/train.sbatch" "$work/example" $long
wait_for 60 is_training example || { cat "$work/example.log"; fail "the example does not train"; }
scancel --signal=USR1 "$job"
has_checkpoint() {
	[ -f "$work/example/checkpoints/latest" ]
}
wait_for 60 has_checkpoint || { cat "$work/example.log"; fail "the example left no checkpoint"; }
wait_for 60 job_is PENDING || { cat "$work/example.log"; fail "the example is not back in the queue: $(job_state)"; }
touch "$work/example/stop"
scancel "$job"

# In a job's script without srun: Mural's own mpirun keeps to this machine, whatever the job has; one's own takes its tasks.
submit own -n 1 --wrap "'$program' train $task --epochs 2 --ranks 2 --run-dir $work/own"
finish own 0
cmp <(losses "$work/plain") <(losses "$work/own") || fail "losses under --ranks in a job differ"
submit mpirun -n 2 --wrap "mpirun '$program' train $task --epochs 2 --run-dir $work/mpirun"
finish mpirun 0
[ "$(ranks_of "$work/mpirun.log")" = 2 ] || { cat "$work/mpirun.log"; fail "mpirun in a job: not two ranks"; }
exit 0
