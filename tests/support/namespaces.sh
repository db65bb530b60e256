# Several hosts on one machine: network namespaces joined by a wire, each with a name of its own. For shell tests: set `self` to the
# test's own path and source this first, before anything is made. SPDX-License-Identifier: MIT
#
# The test starts itself again as host 10.77.5.1, "host-a"; host 10.77.5.2, "host-b", hangs on a veth pair. mpirun reaches host-b with
# the script $agent in the place of ssh, and as bare of an environment. Its files are ours, but for folders that hide_on_b empties there. Exits 77 where the
# kernel does not allow it. Everything ends with the script.
if [ -z "${MURAL_TEST_HOST_A:-}" ]; then
	flags="--net --uts --mount"
	[ "$(id -u)" = 0 ] || flags="$flags --map-root-user"
	command -v ip >/dev/null && command -v nsenter >/dev/null || {
		echo "skipped: no ip or nsenter (Debian, Ubuntu: apt install iproute2 util-linux)"
		exit 77
	}
	unshare $flags ip link add mural-a type veth peer name mural-b 2>/dev/null || {
		echo "skipped: the kernel does not allow network namespaces with a veth pair here"
		exit 77
	}
	MURAL_TEST_HOST_A=1 exec unshare $flags bash "$self" "$@"
fi

# Sets holder, the process that keeps host-b alive.
make_hosts() {
	hostname host-a
	unshare --net --uts --mount sleep 3600 &
	holder=$!
	trap 'kill $holder 2>/dev/null; rm -rf "$work"' EXIT
	wait_for 10 is_apart || fail "host-b does not start"
	ip link add mural-a type veth peer name mural-b
	ip link set mural-b netns $holder
	ip link set lo up
	ip link set mural-a up
	ip addr add 10.77.5.1/24 dev mural-a
	on_b hostname host-b
	on_b ip link set lo up
	on_b ip link set mural-b up
	on_b ip addr add 10.77.5.2/24 dev mural-b
	agent=$work/agent
	sanitizers="LSAN_OPTIONS='$LSAN_OPTIONS' ASAN_OPTIONS='$ASAN_OPTIONS' TSAN_OPTIONS='$TSAN_OPTIONS' UBSAN_OPTIONS='${UBSAN_OPTIONS:-}'"
	cat >"$agent" <<-END
		#!/bin/sh
		[ "\$1" = 10.77.5.2 ] || { echo "no route to \$1" >&2; exit 255; }
		shift; exec env -i PATH="$PATH" HOME="$HOME" $sanitizers nsenter --target $holder --net --uts --mount --root --wd sh -c "cd; \$*"
	END
	chmod +x "$agent"
	export OMPI_MCA_plm_rsh_agent=$agent PRTE_MCA_plm_ssh_agent=$agent HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC=$agent
}
is_apart() {
	[ "$(readlink /proc/$holder/ns/net)" != "$(readlink /proc/self/ns/net)" ] && [ "$(cat /proc/$holder/comm)" = sleep ]
}
on_b() {
	nsenter --target $holder --net --uts --mount --root --wd "$@"
}
hide_on_b() {
	on_b mount -t tmpfs none "$1"
}
# Bytes that host-a has sent over the wire.
bytes_sent() {
	ip -s -o link show mural-a | sed 's/.*TX: *bytes[^\\]*\\ *\([0-9]*\) .*/\1/'
}
