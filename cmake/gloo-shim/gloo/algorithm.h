// LibTorch's wheel has ProcessGroupGloo.hpp and the library behind it, but not the headers of Gloo. Only pointers to its
// types cross our code (sharding/ranks_gloo.cpp), so these declarations are enough; sharding/ranks_test.cpp runs them.
#pragma once
