/* What libmural.so adds to the floors below: its version. SPDX-License-Identifier: MIT */
#include "base/version.h"
#include "mural/info.h"

const char *mural_version(void)
{
	return MU_VERSION;
}
