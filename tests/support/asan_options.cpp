// Linked into the program where it is built with sanitizers. At its end, with LibTorch's threads, the search for leaks
// itself is ended by a signal; unit tests are searched.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
