# libucas_cuda.so: LibTorch's CUDA half (stream_cuda.cpp), NCCL by c10d (ranks_nccl.cpp) and the kernels (gpu/device.cu), for the sources in CUDA_SIDE.
# Needs a CUDA build of LibTorch and nvcc; without them there is no such library, and devices are refused.
option(UCAS_CUDA_KERNELS "libucas_cuda.so, where LibTorch is a build for CUDA and nvcc is there" ON)
find_program(UCAS_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
if(NOT UCAS_CUDA_KERNELS OR NOT UCAS_TORCH_CUDA OR NOT UCAS_NVCC)
  return()
endif()
message(STATUS "CUDA kernels by ${UCAS_NVCC}")
include(cmake/nvcc.cmake)
nvcc_object(DEVICE_OBJECT ${CMAKE_SOURCE_DIR}/src/gpu/device.cu)

# NCCL by c10d needs NCCL's header, which pip puts beside a LibTorch for CUDA. Of CUDA's other libraries types are named alone (cuda-shim).
find_path(UCAS_NCCL_INCLUDE nccl.h PATHS ${UCAS_TORCH_DIR}/../nvidia/nccl/include)
if(UCAS_NCCL_INCLUDE)
  message(STATUS "ranks on CUDA devices: NCCL of ${UCAS_NCCL_INCLUDE}")
else()
  list(FILTER CUDA_SIDE EXCLUDE REGEX "_nccl\\.cpp$")
endif()

add_library(ucas_cuda SHARED ${CUDA_SIDE} ${DEVICE_OBJECT})
target_include_directories(ucas_cuda SYSTEM PRIVATE cmake/cuda-shim ${UCAS_CUDA_INCLUDE} $<$<BOOL:${UCAS_NCCL_INCLUDE}>:${UCAS_NCCL_INCLUDE}>)
target_compile_definitions(ucas_cuda PRIVATE USE_DISTRIBUTED USE_C10D_NCCL FMT_HEADER_ONLY)
target_link_libraries(ucas_cuda PRIVATE ucas_plain ucas::torch ucas::torch_cuda)
if(UCAS_PORTABLE)   # whichever CUDA runtime LibTorch has: this one speaks with the driver itself
  find_library(UCAS_CUDART_STATIC cudart_static HINTS ${UCAS_CUDA_INCLUDE}/../lib ${UCAS_CUDA_INCLUDE}/../lib64 REQUIRED NO_DEFAULT_PATH)
  target_link_libraries(ucas_cuda PRIVATE ${UCAS_CUDART_STATIC} ${CMAKE_DL_LIBS} rt Threads::Threads)
  target_link_options(ucas_cuda PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/python/exports.map)
endif()
add_dependencies(ucas_engine ucas_cuda)
