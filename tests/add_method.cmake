# Adds two methods at build time, as a contributor would: a file and a row of registry.h each, and for the one with a
# signal of its own that signal. Only registry.cpp is compiled again; everything else is the library as it was built.
#   cmake -DROOT=.. -DBUILD=.. -DCXX=.. -P tests/add_method.cmake
set(work ${BUILD}/add_method)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work}/methods)
file(READ ${ROOT}/src/methods/registry.h registry)
string(REGEX REPLACE "(#define UCAS_METHODS\\(X\\)([^\n]*\\\\\n)*[^\n]*X\\([a-z0-9_]+\\))" "\\1 X(uncertain) X(example)" changed "${registry}")
if(changed STREQUAL registry)
  message(FATAL_ERROR "no row found in registry.h")
endif()
file(WRITE ${work}/methods/registry.h "${changed}")
file(COPY ${ROOT}/src/methods/registry.cpp DESTINATION ${work}/methods)
file(COPY ${ROOT}/tests/add_method/ DESTINATION ${work}/methods)
execute_process(
  COMMAND ${CXX} -std=c++20 -O0 -I ${work} -I ${ROOT}/src ${work}/methods/registry.cpp ${work}/methods/example.cpp ${work}/methods/uncertain.cpp
          -o ${work}/example -L ${BUILD} -lucas -Wl,-rpath,${BUILD}
  RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the method does not build")
endif()
execute_process(COMMAND ${work}/example RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the method is not found, or computes something else")
endif()
