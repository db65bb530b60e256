# What `make install` leaves, in components that are Debian packages too (MuralPackage.cmake):
#   program    mural, its library, manual pages, completion, examples
#   mpi, cuda  the modules, which need libraries that not everybody has (installed where they are built)
#   develop    headers, pkg-config file, CMake package
# SPDX-License-Identifier: MIT
include(CMakePackageConfigHelpers)

# The prefix is found from where mural.pc lies, because `cmake --install --prefix` may choose another.
file(RELATIVE_PATH MURAL_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/mural.pc.in mural.pc @ONLY)

install(TARGETS mural mural_cli EXPORT mural-targets
	RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT program NAMELINK_COMPONENT develop
	INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/mural COMPONENT program)
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)

set(MURAL_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/mural)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/mural-config-version.cmake COMPATIBILITY SameMinorVersion)
install(DIRECTORY include/mural DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT develop)
install(FILES ${CMAKE_BINARY_DIR}/mural.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT develop)
install(FILES cmake/mural-config.cmake ${CMAKE_BINARY_DIR}/mural-config-version.cmake
	DESTINATION ${MURAL_CMAKE_DIR} COMPONENT develop)
install(EXPORT mural-targets NAMESPACE mural:: DESTINATION ${MURAL_CMAKE_DIR} COMPONENT develop)
