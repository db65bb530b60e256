# Manual pages and shell completion, made by the program that was just built (scripts/manuals/make). When it cannot run
# here, because it is built for another machine, they are left out. SPDX-License-Identifier: MIT
if(CMAKE_CROSSCOMPILING)
	message(STATUS "built for another machine: no manual pages, no shell completion")
	return()
endif()
set(manuals ${CMAKE_BINARY_DIR}/manuals)
file(GLOB makers CONFIGURE_DEPENDS scripts/manuals/*)
add_custom_command(OUTPUT ${manuals}/made
	COMMAND ${CMAKE_COMMAND} -E rm -rf ${manuals}
	COMMAND ${CMAKE_SOURCE_DIR}/scripts/manuals/make $<TARGET_FILE:mural_cli> ${manuals}
	COMMAND ${CMAKE_COMMAND} -E touch ${manuals}/made
	DEPENDS mural_cli ${makers} VERBATIM)
add_custom_target(manuals ALL DEPENDS ${manuals}/made)

install(DIRECTORY ${manuals}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program)
install(DIRECTORY ${manuals}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
install(DIRECTORY ${manuals}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT program)
install(DIRECTORY ${manuals}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
