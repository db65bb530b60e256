/* The version and the build id that loadable modules must match. SPDX-License-Identifier: MIT */
#ifndef MU_BASE_VERSION_H
#define MU_BASE_VERSION_H

#define MU_VERSION "0.1.0"
/* Changes whenever a table (ops, device, comm) or a struct that crosses a module boundary changes shape. */
#define MU_BUILD_ID "mural-" MU_VERSION "-abi8"

#endif
