# Debian packages through CPack, one per component of MuralInstall.cmake: `make package`.
#
# What a package needs is read from its binaries (dpkg-shlibdeps). So MPI and CUDA are needed by the packages of their
# modules alone, and the program recommends those: it runs without. SPDX-License-Identifier: MIT
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME mural)
set(CPACK_PACKAGE_VENDOR "the Mural project")
set(CPACK_PACKAGE_CONTACT "the Mural project <mural@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains Vision Transformers with a team of workers")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program develop)
foreach(module mpi cuda)
	if(TARGET mural_${module})
		list(APPEND CPACK_COMPONENTS_ALL ${module})
	endif()
endforeach()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(exactly "(= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME mural)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "Vision Transformers, trained by many workers as if one had done it.
DeepSpeed configuration files, PyTorch's weights; no Python. More than one
worker needs the package mural-mpi.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "mural-mpi ${exactly}, gnuplot-nox, curl, ca-certificates")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "dataset-fashion-mnist, mural-cuda ${exactly}")

set(CPACK_DEBIAN_MPI_PACKAGE_NAME mural-mpi)
set(CPACK_COMPONENT_MPI_DESCRIPTION "Mural's module for MPI: more than one worker.")
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "mural ${exactly}, openmpi-bin")

set(CPACK_DEBIAN_CUDA_PACKAGE_NAME mural-cuda)
set(CPACK_COMPONENT_CUDA_DESCRIPTION "Mural's module for NVIDIA's graphics processors.")
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "mural ${exactly}")

set(CPACK_DEBIAN_DEVELOP_PACKAGE_NAME libmural-dev)
set(CPACK_COMPONENT_DEVELOP_DESCRIPTION "Headers, pkg-config file and CMake package of libmural, to train from C.")
set(CPACK_DEBIAN_DEVELOP_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOP_PACKAGE_DEPENDS "mural ${exactly}")
include(CPack)
