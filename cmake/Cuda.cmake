# The CUDA backend, where it is wanted: STEADFAST_WITH_CUDA, the CUDA language, the architectures of STEADFAST_SM.
# auto: on where both nvcc and an NVIDIA card are found. Static runtime: a program carries what it needs but the driver.
find_program(STEADFAST_NVCC nvcc HINTS /usr/local/cuda/bin)
if(STEADFAST_CUDA STREQUAL "on" OR (STEADFAST_CUDA STREQUAL "auto" AND STEADFAST_NVCC AND EXISTS /dev/nvidiactl))
  set(STEADFAST_WITH_CUDA ON)
else()
  set(STEADFAST_WITH_CUDA OFF)
endif()
if(STEADFAST_WITH_CUDA)
  set(CMAKE_CUDA_COMPILER ${STEADFAST_NVCC})
  list(TRANSFORM STEADFAST_SM APPEND "-real" OUTPUT_VARIABLE CMAKE_CUDA_ARCHITECTURES)
  enable_language(CUDA)
  # CMake 3.25 knows no C++20 of this compiler.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  if(CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
  endif()
  find_package(CUDAToolkit REQUIRED)
  # -fmad=false: where a fused multiply-add is meant it is written (__fmaf_rn), so every instance of a template rounds
  # alike. 2810: nvcc sees a nodiscard ignored where a member takes it. FMT_*: nvcc cannot evaluate the checks of fmt 9 at compile time, and switches off constexprs that GCC needs.
  target_compile_options(steadfast_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;--expt-relaxed-constexpr;-lineinfo;-DFMT_CONSTEVAL=;-DFMT_USE_CONSTEXPR=1;-diag-suppress=2810;-Xcompiler=-Wall,-Wextra,-ffp-contract=off>")
endif()
