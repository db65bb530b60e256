/* The collectives table over MPI, opened at run time. SPDX-License-Identifier: MIT */
#include "comm/comm.h"
