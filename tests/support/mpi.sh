# For shell tests with ranks: source it after setting `program` to the path of mural. SPDX-License-Identifier: MIT
#
# Sets bin (where the test programs are) and flavour (openmpi, mpich), and has mpirun start ranks as root and on few cores.
# Exits 77 (skipped) if there is no MPI. fail MESSAGE, expect PATTERN FILE, said FILE, wait_for SECONDS COMMAND.
bin=$(cd "$(dirname "$program")" && pwd)
export MURAL_MODULE_PATH=$bin/../lib/mural
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
# MPI and its plugins keep memory until the process ends, and LeakSanitizer is told so. It needs whole stacks for that: the
# plugins have been closed by then, and only the frames above them have names.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export LSAN_OPTIONS=suppressions=$here/lsan.supp:print_suppressions=0
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}fast_unwind_on_malloc=0
export TSAN_OPTIONS=suppressions=$here/tsan.supp:ignore_noninstrumented_modules=1

if ! command -v mpirun >/dev/null || [ ! -f "$MURAL_MODULE_PATH/mural_comm_mpi.so" ]; then
	echo "skipped: no mpirun, or Mural was built without MPI"
	exit 77
fi

# Open MPI tells how a rank ended; MPICH keeps silent about some ends.
flavour=mpich
mpirun --version | grep -qE 'Open MPI|OpenRTE' && flavour=openmpi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "FAILED: $*"
	exit 1
}

# expect PATTERN FILE [COUNT]: FILE has COUNT (default 1) lines with the extended regular expression.
expect() {
	local n
	n=$(grep -cE -- "$1" "$2")
	[ "$n" = "${3:-1}" ] && return
	echo "expected ${3:-1} line(s) with: $1"
	echo "found $n in:"
	cat "$2"
	exit 1
}

# said FILE: what Mural said there, but for the announcement of ranks. The event library inside mpirun may speak in between when a
# rank dies, and so may mpirun itself ("[host:pid] ..."): no line of Mural's begins like theirs.
said() {
	grep -vE '^mural: starting|^\[(warn|err|msg|debug)\] |^\[[^] :]+:[0-9]+\] ' "$1"
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
	local tries=$(($1 * 20))
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.05
	done
}
