// In libucas.so of a build with UCAS_FUZZ: what programs other than the fuzzer call at each edge.
extern "C" __attribute__((weak, visibility("default"))) void __sanitizer_cov_trace_pc() {}
