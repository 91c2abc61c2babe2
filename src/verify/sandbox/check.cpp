#include "verify/sandbox/sandbox.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "verify/sandbox/value.h"

namespace ucas::code {

namespace {

// Attacks that anyone may do outside a sandbox, whatever the container.
constexpr const char* kHitBare[] = {"reads_a_secret_file",      "writes_a_file_elsewhere",
                                    "removes_a_file_elsewhere", "forks",
                                    "signals_its_parent",       "listens_on_tcp",
                                    "changes_a_mode",           "changes_a_time",
                                    "empties_a_file",           "empties_a_file_by_reading",
                                    "chooses_a_signal",         "owns_a_signal_to_its_parent"};

constexpr const char* kSecret = "a1b2c3d4-secret";
const char kReadable[8] = {1, 2, 3, 4, 5, 6, 7, 8};

// What there is to attack: a folder that anyone may enter and write to, and sockets that listen.
class Bait {
 public:
  Bait() {
    const char* temporary = std::getenv("TMPDIR");
    std::string pattern = str(temporary == nullptr || *temporary == '\0' ? "/tmp" : temporary, "/ucas-sandbox-XXXXXX");
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw Error(ErrorKind::io, str(pattern, ": cannot create the directory: ", std::strerror(errno)), kIoFailure);
    }
    folder_ = pattern;
    ::chmod(folder_.c_str(), 0755);
    write_file(folder_ + "/secret", kSecret);
    ::mkdir((folder_ + "/open").c_str(), 0777);
    ::chmod((folder_ + "/open").c_str(), 0777);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    stream_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (stream_ >= 0 && ::bind(stream_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
        ::listen(stream_, 8) == 0 && ::getsockname(stream_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
      port_ = ntohs(address.sin_port);
    }
    sockaddr_un path{};
    path.sun_family = AF_UNIX;
    const std::string name = folder_ + "/open/socket";
    if (name.size() >= sizeof path.sun_path) return;
    std::memcpy(path.sun_path, name.c_str(), name.size() + 1);
    local_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (local_ >= 0 && ::bind(local_, reinterpret_cast<sockaddr*>(&path), sizeof path) == 0) {
      ::listen(local_, 8);
      ::chmod(name.c_str(), 0777);
    }
  }
  ~Bait() {
    for (int fd : {stream_, local_}) {
      if (fd >= 0) ::close(fd);
    }
    try {
      remove_all(folder_);
    } catch (const Error&) {
      // A folder in /tmp that stays is no reason to stop.
    }
  }
  Bait(const Bait&) = delete;
  Bait& operator=(const Bait&) = delete;

  std::string program() const {
    write_file(folder_ + "/open/victim", "x");
    write_file(folder_ + "/open/kept", "x");
    for (const char* name : {"/open/victim", "/open/kept"}) ::chmod((folder_ + name).c_str(), 0666);
    return str("FOLDER, SECRET, PORT, PARENT, ADDRESS = ", "\"", folder_, "\", \"", kSecret, "\", ", port_, ", ",
               ::getpid(), ", ", reinterpret_cast<uint64_t>(kReadable), "\n", *embedded("verify/sandbox/attacks.py"));
  }

 private:
  std::string folder_;
  int stream_ = -1, local_ = -1, port_ = 0;
};

// Names of attacks and whether they hit; `why` where the run gave no result.
std::map<std::string, bool> try_all(const Sandbox& sandbox, const std::string& program, std::string& why) {
  std::map<std::string, bool> results;
  why = "the attacks gave no result";
  const auto take = [&](const Frame& frame) {
    if (frame.kind == 'c' || frame.kind == 'e') why = str("the attacks could not be run: ", printable(frame.payload));
    if (frame.kind != 'v') return true;
    const auto value = parse_value(frame.payload);
    if (!value || value->kind != Value::Kind::dict) return true;
    for (size_t i = 0; i + 1 < value->items.size(); i += 2)
      results[value->items[i].text] = value->items[i + 1].real != 0;
    return true;
  };
  // A launcher may be killed; a layer that is missing is missing every time.
  for (int attempt = 0; attempt < 3 && results.empty(); ++attempt) {
    const Ended ended = sandbox.run(make_task("steps", program, {"tattack_all()"}), 1 << 20, take);
    if (ended.how == Ended::How::failed) why = ended.reason;
    if (why.starts_with("layer")) break;
  }
  return results;
}

}  // namespace

std::vector<Attack> attack_all(const Sandbox& sandbox) {
  const Bait bait;
  std::string why, why_bare;
  const auto sandboxed = try_all(sandbox, bait.program(), why);
  if (sandboxed.empty()) return {{.name = why}};
  const auto bare = try_all(Sandbox::untried(sandbox.options(), SandboxChoice::none), bait.program(), why_bare);
  if (bare.empty()) return {{.name = "outside the sandbox: " + why_bare}};
  std::vector<Attack> attacks;
  const auto result = [](bool hit) { return hit ? Attack::Result::hit : Attack::Result::missed; };
  for (const auto& [name, hit] : sandboxed) {
    const auto control = bare.find(name);
    const bool must = std::ranges::any_of(kHitBare, [&](const char* n) { return name == n; });
    std::string words = name;
    std::ranges::replace(words, '_', ' ');
    attacks.push_back({words, result(hit), result(control != bare.end() && control->second), must});
  }
  return attacks;
}

}  // namespace ucas::code
