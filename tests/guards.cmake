# Rules of the house as tests: fast, without building anything. tests/guards/NAME.py prints what breaks the rule.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
foreach(guard layering rooms sizes budget functions reading_list names metrics hygiene outside clocks timing documents option_texts words studies formatter)
  add_test(NAME guard.${guard} COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/guards/${guard}.py)
  set_tests_properties(guard.${guard} PROPERTIES LABELS "fast;guard" TIMEOUT ${HANGS} SKIP_RETURN_CODE 77)
endforeach()
