/* Which operation tables this library holds. SPDX-License-Identifier: MIT */
#include "kernels/ops.h"

#include <string.h>

const mu_ops *const mu_ops_all[] = {&mu_ops_reference, &mu_ops_cpu, NULL};

const mu_ops *mu_ops_find(const char *name)
{
	for (const mu_ops *const *table = mu_ops_all; *table; table++)
		if (strcmp((*table)->name, name) == 0)
			return *table;
	return NULL;
}
