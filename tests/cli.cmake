# tests/cli/NAME.test: commands and what they must print, run by tests/cli/run.py. NAME.slow.test runs in check-all only.
file(GLOB CLI_TESTS CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cli/*.test)
foreach(file IN LISTS CLI_TESTS)
  get_filename_component(name ${file} NAME)
  string(REGEX REPLACE "\\.test$" "" name ${name})
  add_test(NAME cli.${name}
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/cli/run.py $<TARGET_FILE:ucas> ${file})
  set(label cli)
  if(name MATCHES "\\.slow$")
    set(label slow)
  endif()
  set_tests_properties(cli.${name} PROPERTIES LABELS ${label} TIMEOUT ${HANGS} SKIP_RETURN_CODE 77
    ENVIRONMENT "OMP_WAIT_POLICY=passive;OMP_NUM_THREADS=1;UCAS_PATIENCE=${PATIENCE}")
endforeach()
