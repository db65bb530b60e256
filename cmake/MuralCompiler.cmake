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
	target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wshadow;-Wstrict-prototypes;-Wmissing-prototypes;-Wpointer-arith;-Wwrite-strings;-Wvla;-Wundef;-Wno-unknown-pragmas>"
		"$<$<AND:$<COMPILE_LANGUAGE:C>,$<BOOL:${MURAL_WERROR}>>:-Werror>")
	set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
	if(MURAL_SANITIZE)
		target_compile_options(${target} PUBLIC "$<$<COMPILE_LANGUAGE:C>:-fsanitize=${MURAL_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
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

# The operations in src/kernels/cpu are compiled once per processor level; table.c picks one at run time. Kernels read
# neither errno nor floating-point traps; without these promises loops with a square root or a clamp stay scalar. NaN and
# infinity keep their meaning: no fast-math anywhere.
function(mural_cpu_levels target)
	file(GLOB sources CONFIGURE_DEPENDS src/kernels/cpu/*.c)
	list(FILTER sources EXCLUDE REGEX "/(cpu|dnnl|table)\\.c$")
	set(flags_base "")
	set(flags_avx2 -mavx2 -mfma)
	set(flags_avx512 -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl)
	set(levels base)
	if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
		set(levels base avx2 avx512)
		target_compile_definitions(${target} PRIVATE MU_CPU_X86)
	endif()
	foreach(level ${levels})
		set(objects ${target}_cpu_${level})
		add_library(${objects} OBJECT ${sources})
		mural_target(${objects})
		mural_openmp(${objects})
		target_compile_definitions(${objects} PRIVATE MU_CPU_LEVEL=${level})
		target_compile_options(${objects} PRIVATE ${flags_${level}} -fno-math-errno -fno-trapping-math)
		target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
	endforeach()
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

# The CUDA module alone includes CUDA's headers and links its libraries; it is opened at run time, so the program runs on
# machines without a GPU, or without CUDA, too.
function(mural_find_cuda)
	include(CheckLanguage)
	check_language(CUDA)
	if(CMAKE_CUDA_COMPILER)
		set(CMAKE_CUDA_ARCHITECTURES ${MURAL_CUDA_ARCHITECTURES} PARENT_SCOPE)
	elseif(MURAL_WITH_CUDA STREQUAL AUTO)
		message(STATUS "no nvcc was found: the program will train on the processor only")
	else()
		message(FATAL_ERROR "MURAL_WITH_CUDA is on, but no nvcc was found: set CMAKE_CUDA_COMPILER to its path")
	endif()
endfunction()

function(mural_cuda_module)
	find_package(CUDAToolkit REQUIRED)
	file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/device/cuda/*.c
		${CMAKE_SOURCE_DIR}/src/kernels/cuda/*.c ${CMAKE_SOURCE_DIR}/src/kernels/cuda/*.cu)
	add_library(mural_cuda MODULE ${cuda_sources})
	mural_target(mural_cuda)
	target_include_directories(mural_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
	target_compile_options(mural_cuda PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>"
		"$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${MURAL_WERROR}>>:-Werror=all-warnings>")
	target_link_libraries(mural_cuda PRIVATE mural_base CUDA::cublasLt CUDA::cudart_static)
	set_target_properties(mural_cuda PROPERTIES PREFIX "" OUTPUT_NAME mural_cuda CUDA_STANDARD 17
		CUDA_VISIBILITY_PRESET hidden INSTALL_RPATH_USE_LINK_PATH ON
		LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/mural)
	install(TARGETS mural_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/mural)
endfunction()
