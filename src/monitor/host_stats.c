/* Host statistics from /proc/stat, /proc/meminfo, /sys/class/thermal and hwmon. SPDX-License-Identifier: MIT */
#include "monitor/host_stats.h"

#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/proc.h"

/* Ticks of the cores in this process's affinity mask. "cpu3 user nice system idle iowait irq softirq steal guest ...":
 * busy is everything but idle and iowait; guest time is contained in user time already. */
static void read_ticks(uint64_t *busy, uint64_t *all)
{
	*busy = *all = 0;
	cpu_set_t mine;
	FILE *file = fopen("/proc/stat", "r");
	if (!file)
		return;
	bool know_mine = sched_getaffinity(0, sizeof mine, &mine) == 0;
	char line[512];
	while (fgets(line, sizeof line, file)) {
		unsigned core;
		unsigned long long t[8] = {0};
		int n = sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &core, &t[0], &t[1], &t[2], &t[3],
		               &t[4], &t[5], &t[6], &t[7]);
		if (n < 5 || core >= CPU_SETSIZE || (know_mine && !CPU_ISSET(core, &mine)))
			continue;
		*busy += t[0] + t[1] + t[2] + t[5] + t[6] + t[7];
		*all += t[0] + t[1] + t[2] + t[3] + t[4] + t[5] + t[6] + t[7];
	}
	fclose(file);
}

/* One line of a small file without its end; false if there is none. */
static bool read_line(const char *folder, const char *entry, const char *leaf, char *text, int size)
{
	char path[512];
	int n = snprintf(path, sizeof path, "%s/%s/%s", folder, entry, leaf);
	FILE *file = n > 0 && n < (int)sizeof path ? fopen(path, "r") : NULL;
	if (!file)
		return false;
	bool read = fgets(text, size, file) != NULL;
	fclose(file);
	text[read ? strcspn(text, "\n") : 0] = '\0';
	return read;
}

static bool is_processor_sensor(const char *name)
{
	static const char *const names[] = {"x86_pkg_temp", "cpu", "soc", "coretemp", "k10temp", "zenpower"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* The hottest processor sensor of a class folder, where each entry has a file `label` with its kind and a file `value`
 * in thousandths of a degree. Other sensors (discs, network cards) do not count. */
static double hottest(const char *folder, const char *label, const char *value)
{
	double best = NAN;
	DIR *entries = opendir(folder);
	if (!entries)
		return best;
	for (struct dirent *entry; (entry = readdir(entries));) {
		char text[64];
		double milli;
		if (entry->d_name[0] == '.' || !read_line(folder, entry->d_name, label, text, sizeof text) ||
		    !is_processor_sensor(text) || !read_line(folder, entry->d_name, value, text, sizeof text) ||
		    sscanf(text, "%lf", &milli) != 1)
			continue;
		best = fmax(best, milli / 1000); /* fmax ignores the NaN */
	}
	closedir(entries);
	return best;
}

void mu_host_stats_init(mu_host_stats *stats)
{
	read_ticks(&stats->busy, &stats->all);
	mu_proc_processor(stats->name, sizeof stats->name);
}

void mu_host_stats_sample(mu_host_stats *stats, mu_device_sample *sample)
{
	uint64_t busy, all;
	read_ticks(&busy, &all);
	*sample = (mu_device_sample){.id = "cpu", .load = NAN};
	snprintf(sample->name, sizeof sample->name, "%s", stats->name);
	if (all > stats->all && busy >= stats->busy)
		sample->load = fmin(100.0, 100.0 * (double)(busy - stats->busy) / (double)(all - stats->all));
	stats->busy = busy;
	stats->all = all;
	sample->total_bytes = mu_proc_bytes("/proc/meminfo", "MemTotal");
	sample->free_bytes = mu_proc_bytes("/proc/meminfo", "MemAvailable");
	if (sample->total_bytes > sample->free_bytes)
		sample->used_bytes = sample->total_bytes - sample->free_bytes;
	sample->celsius = hottest("/sys/class/thermal", "type", "temp");
	if (isnan(sample->celsius))
		sample->celsius = hottest("/sys/class/hwmon", "name", "temp1_input");
}

size_t mu_process_memory(void)
{
	return mu_proc_bytes("/proc/self/status", "VmRSS");
}

size_t mu_process_peak_memory(void)
{
	return mu_proc_bytes("/proc/self/status", "VmHWM");
}
