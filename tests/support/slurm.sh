# A Slurm cluster of one node, for shell tests: source it after mpi.sh. SPDX-License-Identifier: MIT
#
# Everything private: munged with a key of its own, slurmctld and slurmd on ports of their own, all files in $work/slurm; an
# installed cluster is neither used nor disturbed. Exits 77 if Slurm is not installed or this is not root (slurmd starts
# processes for others). The daemons end with the script.
for tool in munged slurmctld slurmd srun sbatch scancel sinfo squeue; do
	PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null || {
		echo "skipped: no $tool (Debian, Ubuntu: apt install slurm-wlm munge)"
		exit 77
	}
done
[ "$(id -u)" = 0 ] || {
	echo "skipped: a private Slurm needs root"
	exit 77
}
PATH=$PATH:/usr/sbin:/sbin
unset "${!SLURM@}" "${!SBATCH@}"
slurm=$work/slurm
export SLURM_CONF=$slurm/slurm.conf

slurm_stop() {
	local pids
	pids=$(cat "$slurm"/{slurmd,slurmctld,munged}.pid 2>/dev/null)
	[ -n "$pids" ] || return
	kill $pids
	wait_for 10 slurm_is_gone $pids || kill -KILL $pids
}
slurm_is_gone() {
	! kill -0 "$@" 2>/dev/null
}
slurm_is_idle() {
	[ "$(sinfo -h -o %t 2>/dev/null)" = idle ]
}

# Two ports that nobody listens on.
slurm_port() {
	local port
	while :; do
		port=$((20000 + RANDOM % 10000))
		(: </dev/tcp/127.0.0.1/$port) 2>/dev/null || break
	done
	echo $port
}

# slurm_start CPUS: a node that has so many, whatever the machine has.
slurm_start() {
	local node
	node=$(hostname -s)
	mkdir -p "$slurm/state" "$slurm/spool"
	chmod 755 "$work" "$slurm" # munged wants its way to be safe and its socket reachable
	head -c 1024 /dev/urandom >"$slurm/munge.key"
	chmod 400 "$slurm/munge.key"
	cat >"$SLURM_CONF" <<-END
		ClusterName=private
		SlurmctldHost=$node(127.0.0.1)
		SlurmctldPort=$(slurm_port)
		SlurmdPort=$(slurm_port)
		SlurmUser=root
		SlurmdUser=root
		AuthType=auth/munge
		AuthInfo=socket=$slurm/munge.socket
		CredType=cred/munge
		StateSaveLocation=$slurm/state
		SlurmdSpoolDir=$slurm/spool
		SlurmctldPidFile=$slurm/slurmctld.pid
		SlurmdPidFile=$slurm/slurmd.pid
		SlurmctldLogFile=$slurm/slurmctld.log
		SlurmdLogFile=$slurm/slurmd.log
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SwitchType=switch/none
		JobAcctGatherType=jobacct_gather/none
		AccountingStorageType=accounting_storage/none
		SchedulerType=sched/builtin
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		SlurmdParameters=config_overrides
		MpiDefault=none
		KillWait=20
		ReturnToService=2
		NodeName=$node NodeAddr=127.0.0.1 CPUs=$1
		PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
	END
	# Since 23.11 slurmd wants cgroups even for nothing, unless it is told; before, the word is unknown.
	[ "$(printf '%s\n' 23.11 "$(slurmd -V | sed 's/[^0-9]*//')" | sort -V | head -n 1)" != 23.11 ] ||
		echo CgroupPlugin=disabled >"$slurm/cgroup.conf"
	munged --force --key-file="$slurm/munge.key" --socket="$slurm/munge.socket" --pid-file="$slurm/munged.pid" \
		--log-file="$slurm/munged.log" --seed-file="$slurm/munged.seed" 2>"$slurm/munged.err" &&
		slurmctld -i 2>"$slurm/slurmctld.err" && slurmd 2>"$slurm/slurmd.err" && wait_for 20 slurm_is_idle || {
		cat "$slurm"/*.err "$slurm"/*.log
		echo "skipped: a private Slurm does not start here"
		exit 77
	}
}
trap 'slurm_stop; rm -rf "$work"' EXIT
