# End-to-end runs of the real program (Python's standard library only). Arguments: the build folder.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  file(GLOB E2E CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/e2e/*_e2e.py)
  foreach(script IN LISTS E2E)
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME e2e.${name} COMMAND ${Python3_EXECUTABLE} ${script} ${CMAKE_BINARY_DIR})
    set_tests_properties(e2e.${name} PROPERTIES LABELS e2e TIMEOUT ${AT_MOST_600} SKIP_RETURN_CODE 77 COST 100
      ENVIRONMENT "OMP_WAIT_POLICY=passive;OMP_NUM_THREADS=1")
  endforeach()
  # The long form: a fault at each call.
  foreach(command training fine-tuning evaluation)
    add_test(NAME e2e.faults_at_every_call_of_${command}
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/e2e/faults_e2e.py ${CMAKE_BINARY_DIR} --every ${command})
    set_tests_properties(e2e.faults_at_every_call_of_${command} PROPERTIES LABELS slow TIMEOUT ${AT_MOST_7200}
      ENVIRONMENT "OMP_WAIT_POLICY=passive;OMP_NUM_THREADS=1")
  endforeach()
  # Skipped, with what is missing, where llama.cpp's converter or a package is not at hand.
  add_test(NAME e2e.llama_cpp_answers_the_same_from_what_is_saved
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/tools/check_gguf.py --ucas $<TARGET_FILE:ucas>)
  set_tests_properties(e2e.llama_cpp_answers_the_same_from_what_is_saved PROPERTIES LABELS e2e TIMEOUT ${AT_MOST_600}
    SKIP_RETURN_CODE 77)
endif()
