/* RAPL through powercap: an entry "intel-rapl:N" is a package, "intel-rapl:N:M" a part of it. The same counters may show
 * again as "intel-rapl-mmio:N", which is therefore left alone. MURAL_POWERCAP names another folder, for tests.
 * SPDX-License-Identifier: MIT */
#include "monitor/rapl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "intel-rapl:"

static const char *folder(void)
{
	const char *other = getenv("MURAL_POWERCAP");
	return other && *other ? other : "/sys/class/powercap";
}

/* A number at the file's beginning; the kernel makes the text anew for each read from there. */
static bool read_number(int fd, uint64_t *value)
{
	char text[32], *end;
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	if (n <= 0)
		return false;
	text[n] = '\0';
	errno = 0;
	*value = strtoull(text, &end, 10);
	return errno == 0 && end != text && (*end == '\n' || *end == '\0') && text[0] != '-';
}

static int open_leaf(const char *entry, const char *leaf)
{
	char path[512];
	int n = snprintf(path, sizeof path, "%s/%s/%s", folder(), entry, leaf);
	return n > 0 && n < (int)sizeof path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

/* "package-0" of an entry; false if it is none whose energy counts. */
static bool counts(const char *entry, char *name, size_t size)
{
	if (strncmp(entry, PREFIX, strlen(PREFIX)) != 0)
		return false;
	int fd = open_leaf(entry, "name");
	ssize_t n = fd >= 0 ? read(fd, name, size - 1) : -1;
	if (fd >= 0)
		close(fd);
	name[n > 0 ? n : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	return strncmp(name, "package", strlen("package")) == 0 || strcmp(name, "dram") == 0;
}

static void cannot(mu_rapl *rapl, const char *entry)
{
	int reason = errno;
	mu_rapl_close(rapl);
	snprintf(rapl->why, sizeof rapl->why, "%.100s/%.40s/energy_uj cannot be read: %.50s%.32s", folder(), entry,
	         strerror(reason), reason == EACCES ? "; an administrator can allow it" : "");
}

/* false: this counter is there and cannot be read. */
static bool add_domain(mu_rapl *rapl, const char *entry, const char *name)
{
	int range = open_leaf(entry, "max_energy_range_uj");
	mu_rapl_domain domain = {.fd = open_leaf(entry, "energy_uj")};
	errno = domain.fd < 0 ? errno : EINVAL; /* what follows fails by its content */
	bool works = domain.fd >= 0 && range >= 0 && read_number(domain.fd, &domain.last) &&
	             read_number(range, &domain.range) && domain.range > 0;
	if (range >= 0)
		close(range);
	if (works) {
		size_t used = strlen(rapl->names);
		if (!strstr(rapl->names, name))
			snprintf(rapl->names + used, sizeof rapl->names - used, "%s%s", used ? ", " : "", name);
		rapl->domains[rapl->n++] = domain;
		return true;
	}
	int reason = errno;
	if (domain.fd >= 0)
		close(domain.fd);
	errno = reason;
	cannot(rapl, entry);
	return false;
}

void mu_rapl_open(mu_rapl *rapl)
{
	*rapl = (mu_rapl){0};
	DIR *entries = opendir(folder());
	if (!entries) {
		snprintf(rapl->why, sizeof rapl->why, "this system shows no energy counters (%.100s: %.60s)", folder(),
		         strerror(errno));
		return;
	}
	bool readable = true;
	for (struct dirent *entry; readable && rapl->n < MU_RAPL_DOMAINS && (entry = readdir(entries));) {
		char name[64];
		if (counts(entry->d_name, name, sizeof name))
			readable = add_domain(rapl, entry->d_name, name);
	}
	closedir(entries);
	if (readable && rapl->n == 0)
		snprintf(rapl->why, sizeof rapl->why, "%.100s has no counter of a processor", folder());
}

void mu_rapl_close(mu_rapl *rapl)
{
	for (size_t i = 0; i < rapl->n; i++)
		close(rapl->domains[i].fd);
	rapl->n = 0;
}

double mu_rapl_joules(mu_rapl *rapl)
{
	for (size_t i = 0; i < rapl->n; i++) {
		mu_rapl_domain *domain = &rapl->domains[i];
		uint64_t now;
		if (!read_number(domain->fd, &now)) {
			mu_rapl_close(rapl);
			snprintf(rapl->why, sizeof rapl->why, "an energy counter could not be read any more");
			break;
		}
		/* Past its largest value a counter goes on from 0. */
		rapl->microjoules += now >= domain->last ? now - domain->last : domain->range - domain->last + now;
		domain->last = now;
	}
	return rapl->n > 0 ? (double)rapl->microjoules * 1e-6 : NAN;
}
