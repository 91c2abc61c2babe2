# End-to-end runs of the real program (Python's standard library only). Arguments: the build folder.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  file(GLOB E2E CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/e2e/*_e2e.py)
  foreach(script IN LISTS E2E)
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME e2e.${name} COMMAND ${Python3_EXECUTABLE} ${script} ${CMAKE_BINARY_DIR})
    set_tests_properties(e2e.${name} PROPERTIES LABELS e2e TIMEOUT 600 SKIP_RETURN_CODE 77 COST 100
      ENVIRONMENT "OMP_WAIT_POLICY=passive;OMP_NUM_THREADS=1")
  endforeach()
endif()
