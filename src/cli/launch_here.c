/* Is that host this machine? By name, or because one of its addresses is on one of our interfaces. A name that nobody here can
 * resolve may still be one that ssh knows: it is another machine. SPDX-License-Identifier: MIT */
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "launch_inside.h"

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (!a || !b || a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return memcmp(&((const struct sockaddr_in *)(const void *)a)->sin_addr,
		              &((const struct sockaddr_in *)(const void *)b)->sin_addr, sizeof(struct in_addr)) == 0;
	return a->sa_family == AF_INET6 &&
	       memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
	              &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* Does one of this machine's interfaces have one of the name's addresses? */
static bool has_own_address(const char *name)
{
	const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *addresses;
	struct ifaddrs *interfaces;
	bool found = false;
	if (getaddrinfo(name, NULL, &wanted, &addresses) != 0)
		return false;
	if (getifaddrs(&interfaces) == 0) {
		for (struct addrinfo *a = addresses; a && !found; a = a->ai_next)
			for (struct ifaddrs *i = interfaces; i && !found; i = i->ifa_next)
				found = same_address(a->ai_addr, i->ifa_addr);
		freeifaddrs(interfaces);
	}
	freeaddrinfo(addresses);
	return found;
}

bool launch_is_here(const char *name)
{
	char own[256] = "";
	gethostname(own, sizeof own - 1);
	return strcmp(name, "localhost") == 0 || strcmp(name, own) == 0 || has_own_address(name);
}

bool launch_hosts_are_here(const mural_hosts *hosts)
{
	for (size_t i = 0; i < mural_hosts_count(hosts); i++)
		if (!launch_is_here(mural_hosts_get(hosts, i)->name))
			return false;
	return true;
}
