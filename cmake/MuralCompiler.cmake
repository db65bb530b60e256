# Compiler settings and optional libraries, one function each. SPDX-License-Identifier: MIT
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # pthread affinity, dladdr
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
	set(CMAKE_BUILD_TYPE Release)
endif()

function(mural_target target)
	target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
	target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
	target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
		-Wpointer-arith -Wwrite-strings -Wvla -Wundef -Wno-unknown-pragmas $<$<BOOL:${MURAL_WERROR}>:-Werror>)
	set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
	if(MURAL_SANITIZE)
		target_compile_options(${target} PUBLIC -fsanitize=${MURAL_SANITIZE} -fno-omit-frame-pointer
			-fno-sanitize-recover=all)
		target_link_options(${target} PUBLIC -fsanitize=${MURAL_SANITIZE})
	endif()
endfunction()

function(mural_openmp target)
	if(NOT MURAL_WITH_OPENMP)
		return()
	endif()
	find_package(OpenMP REQUIRED COMPONENTS C)
	target_link_libraries(${target} PUBLIC OpenMP::OpenMP_C)
endfunction()

# oneDNN 2.6 (Debian 12) and 3.x have different C interfaces; src/kernels/cpu/dnnl.c hides that. Its CMake package is
# not asked: Debian's requires OpenCL to be installed, which nothing here needs.
function(mural_onednn target)
	if(NOT MURAL_WITH_ONEDNN)
		return()
	endif()
	find_library(MURAL_DNNL_LIBRARY dnnl)
	find_path(MURAL_DNNL_INCLUDE oneapi/dnnl/dnnl.h)
	if(NOT MURAL_DNNL_LIBRARY OR NOT MURAL_DNNL_INCLUDE)
		message(FATAL_ERROR "oneDNN was not found: install libdnnl-dev, or configure with -DMURAL_WITH_ONEDNN=OFF "
			"(matrix products are then slow plain loops)")
	endif()
	target_include_directories(${target} SYSTEM PRIVATE ${MURAL_DNNL_INCLUDE})
	target_link_libraries(${target} PUBLIC ${MURAL_DNNL_LIBRARY})
	target_compile_definitions(${target} PRIVATE MU_WITH_ONEDNN)
endfunction()

# The MPI module alone includes mpi.h; it is opened at run time, so the program runs without MPI too.
function(mural_mpi_module)
	find_package(MPI QUIET COMPONENTS C)
	if(NOT MPI_C_FOUND)
		message(WARNING "no MPI was found: the program will train with one rank only (install libopenmpi-dev)")
		return()
	endif()
	file(GLOB mpi_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/comm/mpi/*.c)
	add_library(mural_mpi MODULE ${mpi_sources})
	mural_target(mural_mpi)
	target_link_libraries(mural_mpi PRIVATE mural_base MPI::MPI_C)
	set_target_properties(mural_mpi PROPERTIES PREFIX "" OUTPUT_NAME mural_comm_mpi
		LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/mural)
	install(TARGETS mural_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/mural)
endfunction()
