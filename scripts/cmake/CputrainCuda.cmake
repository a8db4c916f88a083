# Decides what CPUTRAIN_CUDA=AUTO means here and finds nvcc where it is wanted. Sets CPUTRAIN_CUDA_KIND to ON, OFF or
# EMULATED. Needs the CUDA Toolkit's compiler and static runtime, nothing else of it, and no GPU.
set_property(CACHE CPUTRAIN_CUDA PROPERTY STRINGS AUTO ON OFF EMULATED)
if(NOT CPUTRAIN_CUDA MATCHES "^(AUTO|ON|OFF|EMULATED)$")
  message(FATAL_ERROR "-DCPUTRAIN_CUDA=${CPUTRAIN_CUDA}: must be AUTO, ON, OFF or EMULATED")
endif()
set(CPUTRAIN_CUDA_KIND ${CPUTRAIN_CUDA})
if(CPUTRAIN_CUDA_KIND STREQUAL AUTO)
  set(CPUTRAIN_CUDA_KIND OFF)
  # Sanitizers watch the emulated device; what nvcc makes they could not.
  if(NOT CPUTRAIN_SANITIZE)
    find_program(CPUTRAIN_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH PATH_SUFFIXES bin
                 PATHS /usr/local/cuda/bin)
    if(CPUTRAIN_NVCC OR CMAKE_CUDA_COMPILER OR DEFINED ENV{CUDACXX})
      set(CPUTRAIN_CUDA_KIND ON)
    endif()
  endif()
endif()
# A100 and H100 as they are, newer ones through PTX: the driver compiles that in seconds, once. Machine code for 100 and
# 120 would nearly double the plugin and the time that nvcc takes for it.
set(CPUTRAIN_CUDA_ARCHITECTURES 80-real 90a-real 90-virtual)
if(CPUTRAIN_CUDA_KIND STREQUAL ON)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(CPUTRAIN_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATH_SUFFIXES bin PATHS /usr/local/cuda/bin)
    if(NOT CPUTRAIN_NVCC)
      message(FATAL_ERROR "nvcc was not found (CPUTRAIN_CUDA is ON); install the CUDA Toolkit, 12 or newer, say where "
                          "it is (-DCMAKE_CUDA_COMPILER=.../bin/nvcc), or configure with -DCPUTRAIN_CUDA=OFF")
    endif()
    set(CMAKE_CUDA_COMPILER ${CPUTRAIN_NVCC})
  endif()
  if(NOT CMAKE_CUDA_HOST_COMPILER)
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})  # which CMake reads
    set(CMAKE_CUDA_ARCHITECTURES ${CPUTRAIN_CUDA_ARCHITECTURES})
  endif()
  if(NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  enable_language(CUDA)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
    message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} is CUDA ${CMAKE_CUDA_COMPILER_VERSION} (kernels are C++20, which 12 "
                        "and newer read); install a newer CUDA Toolkit or configure with -DCPUTRAIN_CUDA=OFF")
  endif()
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc 12 reads it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  find_package(CUDAToolkit REQUIRED)
endif()
message(STATUS "CUDA backend: ${CPUTRAIN_CUDA_KIND} (-DCPUTRAIN_CUDA=${CPUTRAIN_CUDA})")
