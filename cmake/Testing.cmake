# GoogleTest programs as ctest tests. Tests written in Python run in .venv (./setup makes it), else with any python3.
find_package(GTest REQUIRED)
if(EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python3 AND NOT Python3_EXECUTABLE)
  set(Python3_EXECUTABLE ${PROJECT_SOURCE_DIR}/.venv/bin/python3)
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
include(GoogleTest)

# steadfast_test(NAME sources... DEPENDS targets... LABELS labels...): one GoogleTest program; each test is a ctest test.
function(steadfast_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "DEPENDS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE steadfast_options ${ARG_DEPENDS} GTest::gtest GTest::gtest_main GTest::gmock)
  target_compile_definitions(${name} PRIVATE STEADFAST_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 120
    PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
