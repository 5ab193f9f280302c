# One interface target carries the project's compile options: warnings, exact floating point, sanitizers.
add_library(steadfast_options INTERFACE)
target_include_directories(steadfast_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
# -Wno-restrict: GCC 12 warns falsely of its own std::string (GCC bug 105651).
# -ffp-contract=off: where a fused multiply-add is meant it is written; the compiler never chooses one.
target_compile_options(steadfast_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wno-psabi;-Wno-restrict;-ffp-contract=off>)
if(STEADFAST_SANITIZE)
  target_compile_options(steadfast_options INTERFACE -fsanitize=${STEADFAST_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(steadfast_options INTERFACE -fsanitize=${STEADFAST_SANITIZE})
endif()

# steadfast_library(NAME sources... DEPENDS targets...): one static library a source directory.
function(steadfast_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC steadfast_options ${ARG_DEPENDS})
endfunction()
