// ucas-fuzz SEEDS TARGET|all [--seconds S | --inputs N] [--seed K] [--finds FOLDER]     changed seeds to a reader
// ucas-fuzz SEEDS TARGET FILE...                                                         these files alone
// A worker process runs the inputs, so that what ends it is one finding of many: its input is left in FOLDER as
// TARGET-REASON-N. An input gets 2 s of the processor and 512 MB (more under a sanitizer, which takes its own). In a
// build with UCAS_FUZZ inputs that take a new edge become seeds. Exit code 1: something was found.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "fuzz/coverage.h"
#include "fuzz/mutate.h"
#include "fuzz/target.h"

namespace ucas::fuzz {

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr int64_t kSeconds = 10, kMegabytes = 1536;
#else
constexpr int64_t kSeconds = 2, kMegabytes = 512;
#endif
constexpr size_t kLongestSeed = 64 << 10, kMostFinds = 20;

struct Options {
  double seconds = 0;
  int64_t inputs = 0;
  uint64_t seed = 1;
  std::string finds = ".";
};

// What worker and parent both see.
struct Shared {
  std::array<char, (kLongestSeed + 4096)> input;
  size_t size;
  int64_t done, grown;
  std::array<char, 64> reason;
  std::array<uint8_t, kEdges> edges;  // counts seen, as powers of two
};

void give_reason(Shared& shared, const char* reason) {
  std::snprintf(shared.reason.data(), shared.reason.size(), "%s", reason);
}

Shared* shared_memory() {
  void* at = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  UCAS_CHECK(at != MAP_FAILED, "memory for worker and parent");
  return static_cast<Shared*>(at);
}
Shared* shared = nullptr;

void limit_time(int64_t seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

int64_t peak_megabytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss >> 10;
}

// A refusal is of the user's input, or of numbers in it, in text that a terminal may show.
void check_refusal(const Error& error) {
  const std::string_view text = error.what();
  require(error.exit_code() == kBadInput || error.exit_code() == kNumeric || error.exit_code() == kInterrupted,
          "a refusal with the exit code of a failure");
  require(error.kind() != ErrorKind::internal && !text.empty(), "a refusal that says nothing");
  require(std::ranges::none_of(text, [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == '\x7f'; }),
          "control bytes in a refusal");
  require(valid_utf8(text), "a refusal that is not UTF-8");
}

void run_one(const Target& target, const std::string& input) {
  std::memcpy(shared->input.data(), input.data(), input.size());
  shared->size = input.size();
  give_reason(*shared, "crash");
  const int64_t before = peak_megabytes();
  limit_time(kSeconds);
  try {
    target.run(input);
  } catch (const Error& error) {
    check_refusal(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "threw: %s\n", error.what());
    require(false, "an exception that is no refusal");
  }
  limit_time(0);
  ++shared->done;
  if (peak_megabytes() > before + kMegabytes) {
    std::fprintf(stderr, "%lld MB\n", static_cast<long long>(peak_megabytes()));
    require(false, "memory");
  }
}

// Did the input take an edge that none before it has taken so often?
bool is_new() {
  bool fresh = false;
  for (size_t i = 0; i < kEdges; ++i) {
    if (seen_now[i] == 0) continue;
    const auto often = static_cast<uint8_t>(std::bit_ceil(static_cast<unsigned>(seen_now[i])) > 128
                                                ? 128
                                                : std::bit_ceil(static_cast<unsigned>(seen_now[i])));
    if ((shared->edges[i] & often) == 0) {
      shared->edges[i] |= often;
      fresh = true;
    }
    seen_now[i] = 0;
  }
  return fresh;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

std::vector<std::string> seeds_of(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> seeds;
  for (const auto& path : paths) {
    std::string bytes = bytes_of(path.string());
    if (bytes.size() <= kLongestSeed) seeds.push_back(std::move(bytes));
  }
  return seeds;
}

// The worker: all seeds as they are, then changed ones until it is told to stop or falls.
[[noreturn]] void work(const Target& target, std::vector<std::string> pool, const Options& options, uint64_t seed,
                       double until, bool first) {
  const size_t plain = pool.size();
  Mutator mutator(seed, pool, kLongestSeed);
  for (size_t i = 0; first && i < plain; ++i) {
    run_one(target, pool[i]);
    is_new();
  }
  while (options.inputs > 0 ? shared->done < options.inputs : now_seconds() < until) {
    const size_t of = mutator.below(2) == 0 && pool.size() > plain ? plain + mutator.below(pool.size() - plain)
                                                                   : mutator.below(pool.size());
    std::string input = mutator.change(pool[of], pool[mutator.below(pool.size())]);
    run_one(target, input);
    if (is_new()) {
      ++shared->grown;
      pool.push_back(std::move(input));
    }
  }
  std::_Exit(0);
}

void keep(const Target& target, const Options& options, size_t number, int status) {
  const char* reason = WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF ? "time" : shared->reason.data();
  std::string name = str(options.finds, "/", target.name, "-", reason, "-", number);
  std::ranges::replace(name, ' ', '_');
  std::filesystem::create_directories(options.finds);
  std::ofstream(name, std::ios::binary).write(shared->input.data(), static_cast<std::streamsize>(shared->size));
  std::printf("FOUND %s: %s, %zu bytes\n", name.c_str(), reason, shared->size);
  std::fflush(stdout);
}

size_t fuzz(const Target& target, const std::string& seeds, const Options& options) {
  std::vector<std::string> pool = seeds_of(str(seeds, "/", target.name));
  UCAS_CHECK(!pool.empty(), "seeds of every target");
  std::memset(shared, 0, sizeof(Shared));
  const double until = now_seconds() + options.seconds;
  size_t finds = 0;
  for (uint64_t round = 0; finds < kMostFinds; ++round) {
    std::fflush(stdout);
    const pid_t worker = ::fork();
    if (worker == 0 && std::freopen("/dev/null", "w", stdout) != nullptr)
      work(target, pool, options, options.seed + round * 7919, until, round == 0);
    int status = 0;
    ::waitpid(worker, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    keep(target, options, ++finds, status);
  }
  const auto edges = std::ranges::count_if(shared->edges, [](uint8_t seen) { return seen != 0; });
  std::printf("%-18s %8lld inputs, %3zu seeds, %5lld more, %6lld edges, %zu found\n", target.name,
              static_cast<long long>(shared->done), pool.size(), static_cast<long long>(shared->grown),
              static_cast<long long>(edges), finds);
  std::fflush(stdout);
  return finds;
}

int run_files(const Target& target, int count, char** paths) {
  for (int i = 0; i < count; ++i) {
    std::string bytes = bytes_of(paths[i]);
    bytes.resize(std::min(bytes.size(), shared->input.size()));
    const double before = now_seconds();
    run_one(target, bytes);
    std::printf("%s: %.3f s\n", paths[i], now_seconds() - before);
  }
  return 0;
}

int usage() {
  std::fprintf(stderr,
               "ucas-fuzz SEEDS TARGET|all [--seconds S | --inputs N] [--seed K] [--finds FOLDER]\n"
               "ucas-fuzz SEEDS TARGET FILE...\ntargets:");
  for (const Target& target : targets()) std::fprintf(stderr, " %s", target.name);
  std::fprintf(stderr, "\n");
  return 2;
}

}  // namespace

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "ucas-fuzz: %s\n", what);
  give_reason(*shared, what);
  std::abort();
}

std::vector<Target> targets() {
  std::vector<Target> all;
  for (const auto& some : {checkpoint_targets(), data_targets(), record_targets()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

int main(int argc, char** argv) {
  if (argc < 3) return usage();
  shared = shared_memory();
  set_support(argv[1]);
  scratch();
  Options options;
  int first = 3;
  for (; first + 1 < argc && argv[first][0] == '-'; first += 2) {
    const std::string key = argv[first], value = argv[first + 1];
    if (key == "--seconds") options.seconds = std::stod(value);
    if (key == "--inputs") options.inputs = std::stoll(value);
    if (key == "--seed") options.seed = std::stoull(value);
    if (key == "--finds") options.finds = value;
  }
  set_log_sink([](LogLevel, const std::string&) {});
  ::setenv("UCAS_PYTHON", "/nowhere/python3", 1);  // else a process for each chat template
  size_t finds = 0, run = 0;
  for (const Target& target : targets()) {
    if (std::string_view(argv[2]) != "all" && std::string_view(argv[2]) != target.name) continue;
    ++run;
    if (first < argc) return run_files(target, argc - first, argv + first);
    finds += fuzz(target, argv[1], options);
  }
  std::filesystem::remove_all(scratch());
  if (run == 0) return usage();
  return finds > 0 ? 1 : 0;
}

}  // namespace ucas::fuzz

// One line of a sanitizer ends the worker; what it frees is not kept for long, so that memory is the reader's own.
extern "C" const char* __asan_default_options() {
  return "abort_on_error=1:allocator_may_return_null=0:max_allocation_size_mb=1024:quarantine_size_mb=8:"
         "malloc_context_size=8:detect_leaks=0:handle_abort=0";
}
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1:abort_on_error=1:print_stacktrace=1"; }

int main(int argc, char** argv) { return ucas::fuzz::main(argc, argv); }
