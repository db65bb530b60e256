#!/bin/bash
# What is wrong before a rank can work: no mpirun, another MPI's launcher, a module that is missing, broken or of another
# build. Also the words of launchers that are not installed here, spoken by an imitation. SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
probe=$bin/programs/launch_probe
export TMPDIR=$work

# run CODE COMMAND... (Not through said: what the parent holds back is what is asked here.)
run() {
	local wanted=$1
	shift
	timeout 60 "$@" >"$work/out" 2>"$work/all"
	local code=$?
	grep -v '^mural: starting' "$work/all" >"$work/err"
	[ $code = "$wanted" ] || { cat "$work/all"; fail "$*: exit code $code, expected $wanted"; }
}

# No mpirun.
run 1 env PATH=/nonexistent "$probe" --ranks 2 sum
expect '^mural: more than one rank needs mpirun, and there is none: install it .*openmpi-bin' "$work/err"
run 2 env MURAL_MPIRUN=/nonexistent/mpirun "$probe" --ranks 2 sum
expect '^mural: "/nonexistent/mpirun" cannot be run$' "$work/err"
expect 'environment variable MURAL_MPIRUN' "$work/err"

# The launcher says 4, MPI says 1.
run 2 env PMI_SIZE=4 PMI_RANK=0 "$probe" sum
expect "^mural: MPICH's mpiexec started 4 ranks, but the MPI library that Mural uses \(.*\) sees 1: " "$work/err"
run 2 env PMI_SIZE=4 PMI_RANK=3 "$probe" sum
expect . "$work/err" 0 # rank 0 has said it

# Modules. Alone, none is needed.
mkdir "$work/modules"
run 0 env MURAL_MODULE_PATH="$work/modules" "$probe" sum
if [ ! -f "$bin/programs/mural/mural_comm_mpi.so" ]; then
	run 1 env MURAL_MODULE_PATH="$work/modules" PMI_SIZE=2 PMI_RANK=0 "$probe" sum
	expect "^mural: more than one rank needs MPI, and the module mural_comm_mpi.so was not found in $work/modules, " "$work/err"
fi
echo "not a shared object" >"$work/modules/mural_comm_mpi.so"
run 1 env MURAL_MODULE_PATH="$work/none:$work/modules" PMI_SIZE=2 PMI_RANK=0 "$probe" sum
expect '^mural: the MPI module does not load: ' "$work/err"
expect "^       $work/modules/mural_comm_mpi.so$" "$work/err"
if command -v cc >/dev/null; then
	echo 'const struct { const char *id, *flavour; void *table; } mu_comm_module_entry = {"mural-0.0.0-abi0", "openmpi", 0};' |
		cc -shared -fPIC -x c -o "$work/modules/mural_comm_mpi.so" -
	run 1 env MURAL_MODULE_PATH="$work/modules" PMI_SIZE=2 PMI_RANK=0 "$probe" sum
	expect '^mural: the module was built for "mural-0.0.0-abi0", this is "mural-[^"]*": ' "$work/err"
	echo 'int nothing;' | cc -shared -fPIC -x c -o "$work/modules/mural_comm_mpi.so" -
	run 1 env MURAL_MODULE_PATH="$work/modules" PMI_SIZE=2 PMI_RANK=0 "$probe" sum
	expect '^mural: not a Mural module: ' "$work/err"
fi

# imitate VERSION WORDS CODE: an mpirun that says so.
imitate() {
	cat >"$work/mpirun" <<-END
		#!/bin/sh
		[ "\$1" = --version ] && { echo "$1"; exit 0; }
		printf "%s " "\$@" >"$work/arguments"
		cat >&2 <<'WORDS'
		$2
		WORDS
		exit $3
	END
	chmod +x "$work/mpirun"
	export MURAL_MPIRUN=$work/mpirun
}
rule=$(printf '=%.0s' $(seq 83))
dashes=$(printf -- '-%.0s' $(seq 76))

imitate 'HYDRA build details:' "a rank's own line
$rule
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 2 PID 71 RUNNING AT c12
=   KILLED BY SIGNAL: 9 (Killed)
$rule" 9
run 1 "$probe" --ranks 4 sum
expect '^mural: rank 2 of 4 \(node c12\) was killed by signal 9 \(Killed\)' "$work/err"
expect "^a rank's own line$" "$work/err"
expect '===' "$work/err" 0
expect "^-n 4 [^ ]*launch_probe sum $" "$work/arguments" # none of Open MPI's flags

imitate 'HYDRA build details:' "$rule
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 71 RUNNING AT c12
=   EXIT CODE: 9
$rule
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application." 9
run 1 "$probe" --ranks 4 sum
expect '^mural: one of 4 ranks \(node c12\) was killed by signal 9 \(Killed\)' "$work/err"
[ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; fail "more than one message"; }

imitate 'mpirun (Open MPI) 5.0.3' "[c12:71] *** Process received signal ***
[c12][[1638,1],0][btl_tcp_proc.c:266:mca_btl_tcp_proc_create_interface_graph] Unable to find reachable pairing
$dashes
prterun noticed that process rank 1 with PID 72 on node c12 exited on
signal 11 (Segmentation fault).
$dashes" 139
run 1 "$probe" --ranks 2 sum
expect '^mural: rank 1 of 2 \(node c12\) was killed by signal 11 \(Segmentation fault\)$' "$work/err"
[ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; fail "more than one message"; }

# The event library in mpirun complains of a rank's pipe that is gone already.
imitate 'mpirun (Open MPI) 4.1.4' "[warn] Epoll MOD(1) on fd 26 failed. Old events were 6; read change was 0 (none): Bad file descriptor
[err] event_base_loop: something
[msg] a message
[debug] and more
[warning] is a rank's own
$dashes
mpirun noticed that process rank 1 with PID 72 on node c12 exited on signal 9 (Killed).
$dashes" 137
run 1 "$probe" --ranks 2 sum
expect '^mural: rank 1 of 2 \(node c12\) was killed by signal 9 \(Killed\)' "$work/err"
expect "^\[warning\] is a rank's own\$" "$work/err"
[ "$(wc -l <"$work/err")" = 2 ] || { cat "$work/err"; fail "the event library's words were passed on"; }

imitate 'mpirun (Open MPI) 5.0.7' "$dashes
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-c12-16565@1,1]
   Exit code:    3
$dashes" 3
run 3 "$probe" --ranks 2 sum
expect '^mural: rank 1 of 2 ended with code 3 and left no message$' "$work/err"
[ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; fail "more than one message"; }

# Its words may have NUL bytes before and between them.
sed -i '$d' "$work/mpirun"
printf '%s\n' "printf '\\0[c12:00000] *** An error occurred in Socket closed\\n\\0\\n' >&2; exit 3" >>"$work/mpirun"
run 3 "$probe" --ranks 2 sum
expect '^mural: rank 1 of 2 ended with code 3 and left no message$' "$work/err"
[ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; fail "more than one message"; }

# Nothing explains it: then mpirun's own words are shown.
imitate 'mpirun (Open MPI) 4.1.4' "$dashes
There are not enough slots available in the system
$dashes" 1
run 1 "$probe" --ranks 2 sum
expect '^There are not enough slots' "$work/err"
expect 'mpirun ended with code 1 and no rank left a message$' "$work/err"
imitate 'mpirun (Open MPI) 4.1.4' 'all is well' 0
run 0 "$probe" --ranks 2 sum
expect '^all is well$' "$work/err"

# Ranks that mpirun leaves behind do not stay, though they ignore a polite request and keep our pipe open.
cat >"$work/mpirun" <<-END
	#!/bin/bash
	[ "\$1" = --version ] && { echo 'mpirun (Open MPI) 4.1.4'; exit 0; }
	( trap '' TERM; sleep 1000 & echo \$! >"$work/orphan"; wait ) &
	while [ ! -s "$work/orphan" ]; do sleep 0.05; done
	exit 0
END
run 0 "$probe" --ranks 2 sum
kill -0 "$(cat "$work/orphan")" 2>/dev/null && fail "an orphan is still there"
ls -d "$work"/mural-* 2>/dev/null && fail "temporary folders were left"
exit 0
