/* mural: finds the command and runs it. SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "mural/info.h"

int main(void)
{
	printf("mural %s\n", mural_version());
	return 0;
}
