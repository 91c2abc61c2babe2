# Device code without CMake's CUDA language, which knows neither this nvcc's C++20 nor the toolkit of a pip package.
#   nvcc_object(OUT file.cu)  OUT = an object file for each architecture of UCAS_CUDA_ARCHITECTURES
# The runtime's own library comes with LibTorch; nothing is linked here.
set(UCAS_CUDA_ARCHITECTURES "80;86;89;90;100;120" CACHE STRING
  "GPU architectures to compile for: 80 A100, 86 RTX 30 and A40, 89 RTX 40, L4 and L40, 90 H100 and H200, 100 B200, 120 RTX 50 and PRO 6000")
# PTX, from which a driver compiles for later devices: of 90 for all from sm_90 on, of 120 for what follows Blackwell.
set(UCAS_CUDA_PTX "90;120" CACHE STRING "virtual architectures whose PTX is embedded")
cmake_path(GET UCAS_NVCC PARENT_PATH _nvcc_bin)
file(REAL_PATH ${UCAS_NVCC} _nvcc_real)
cmake_path(GET _nvcc_real PARENT_PATH _nvcc_real_bin)
find_path(UCAS_CUDA_INCLUDE cuda_runtime_api.h HINTS ${_nvcc_real_bin}/../include ${_nvcc_bin}/../include
  /usr/local/cuda/include $ENV{CUDA_HOME}/include REQUIRED NO_DEFAULT_PATH)

function(nvcc_object OUT SOURCE)
  if(CCACHE)
    set(CCACHE_OR_NOTHING ${CCACHE})
  endif()
  cmake_path(GET SOURCE STEM name)
  set(object ${CMAKE_BINARY_DIR}/${name}.cu.o)
  set(architectures "")
  foreach(architecture IN LISTS UCAS_CUDA_ARCHITECTURES)
    list(APPEND architectures -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  foreach(architecture IN LISTS UCAS_CUDA_PTX)
    list(APPEND architectures -gencode arch=compute_${architecture},code=compute_${architecture})
  endforeach()
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/gpu/*.h ${CMAKE_SOURCE_DIR}/src/kernels/gpu/*.inc)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CCACHE_OR_NOTHING} ${UCAS_NVCC} -std=c++20 -O3 --expt-relaxed-constexpr ${architectures} -Xcompiler -fPIC
            -I${CMAKE_SOURCE_DIR}/src -c ${SOURCE} -o ${object}
    DEPENDS ${SOURCE} ${headers} ${CMAKE_SOURCE_DIR}/src/kernels/lm_head.h ${CMAKE_SOURCE_DIR}/src/base/rng.h
    COMMENT "Compiling device code ${name}.cu" VERBATIM)
  set(${OUT} ${object} PARENT_SCOPE)
endfunction()
