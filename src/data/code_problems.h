// Tests of programming problems, as data sets publish them -> the gold answer that the code grader reads
// (verify/code/tests.h). Feeds `ucas verify --kind code`.
// clang-format off
//   test | test_list                        text of asserts, or a list of them (LeetCode, HumanEval, MBPP);
//                                           entry_point, test_setup_code
//   input_output                            [{input, output}] with entry_point (LeetCodeDataset), or
//                                           {inputs, outputs, fn_name}
//   public_test_cases, private_test_cases   LiveCodeBench: JSON text of [{input, output, testtype}], the private ones
//                                           perhaps packed; metadata.func_name
//   ground_truth of verl                    JSON text of {inputs, outputs, fn_name}
//   asserts | calls | values | stdin        our own
// clang-format on
#pragma once

#include <string>
#include <string_view>

#include "data/rows/jsonl.h"

namespace ucas {

// "" where the row has no tests. Error(ErrorKind::data_line) for what looks like tests and is none.
std::string gold_of_tests(const JsonRow& row);

// Of verl's ground_truth that is such a JSON text; "" for any other text.
std::string gold_of_truth(const JsonRow& row, const std::string& truth);

// Whether a right answer is tests, as the above write them, or text of asserts.
bool holds_tests(const std::string& gold);

// LiveCodeBench's private tests: base64 of zlib of a pickle that holds one text and nothing else. This reads that one
// form and refuses every other: a pickle is a program, and none is run here. Error(ErrorKind::data_line, "WHERE: ...").
std::string unpack_text(std::string_view packed, const std::string& where);

}  // namespace ucas
