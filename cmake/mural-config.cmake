# find_package(mural): the target mural::mural. The library carries what it needs itself. SPDX-License-Identifier: MIT
include("${CMAKE_CURRENT_LIST_DIR}/mural-targets.cmake")
