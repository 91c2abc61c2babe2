# End-to-end runs of the real program (Python's standard library only). Arguments: the build folder.
# e2e/NAME_e2e.py is part of `make test` where a shorter form of it is named here or it is short; the whole of the others is labelled "check".
set(LONG check clock clusters commands_ranks diagnose faults launch masters_ranks micro_ranks offload rank_faults ranks replay resume reward samplers samplers_ranks study study_kills tutorial)
set(SHORT ranks resume reward study)   # with --short
# The task and the base that most of them begin with, made once.
set(E2E_BASE ${CMAKE_BINARY_DIR}/e2e-base)
add_test(NAME e2e.base COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/e2e/make_base.py ${CMAKE_BINARY_DIR} ${E2E_BASE})
set_tests_properties(e2e.base PROPERTIES LABELS e2e TIMEOUT ${HANGS} FIXTURES_SETUP e2e_base COST 200
  ENVIRONMENT "OMP_WAIT_POLICY=passive;OMP_NUM_THREADS=1")
function(e2e_test name labels)
  add_test(NAME e2e.${name} COMMAND ${Python3_EXECUTABLE} -B ${ARGN})
  set_tests_properties(e2e.${name} PROPERTIES LABELS "${labels}" TIMEOUT ${HANGS} SKIP_RETURN_CODE 77 COST 100
    FIXTURES_REQUIRED e2e_base ENVIRONMENT "OMP_WAIT_POLICY=passive;OMP_NUM_THREADS=1;UCAS_E2E_BASE=${E2E_BASE}")
endfunction()
file(GLOB E2E CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/e2e/*_e2e.py)
foreach(script IN LISTS E2E)
  get_filename_component(name ${script} NAME_WE)
  string(REGEX REPLACE "_e2e$" "" stem ${name})
  set(labels e2e)
  if(stem IN_LIST LONG)
    set(labels "e2e;check")
  endif()
  e2e_test(${name} "${labels}" ${script} ${CMAKE_BINARY_DIR})
  if(stem IN_LIST SHORT)
    e2e_test(${name}_short e2e ${script} ${CMAKE_BINARY_DIR} --short)
  endif()
endforeach()
# The long form: a fault at each call.
foreach(command training fine-tuning evaluation)
  e2e_test(faults_at_every_call_of_${command} slow ${CMAKE_CURRENT_SOURCE_DIR}/e2e/faults_e2e.py ${CMAKE_BINARY_DIR} --every ${command})
  set_tests_properties(e2e.faults_at_every_call_of_${command} PROPERTIES TIMEOUT ${HANGS_SLOW})
endforeach()
