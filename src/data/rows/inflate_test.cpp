#include "data/rows/jsonl.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <tuple>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "data/problems.h"

namespace ucas {
namespace {

std::string gzipped(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(::deflateBound(&stream, bytes.size()) + 64, 0);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

TEST(inflate, problem_files_packed_by_gzip_are_read_as_those_that_are_not) {
  const std::string folder = str(::testing::TempDir(), "ucas_inflate_", ::getpid());
  make_directories(folder);
  const std::string row = R"({"problem": "1+1?", "answer": "2"})";
  const std::string two = gzipped(row + "\n") + gzipped(row + "\n");  // members after one another
  for (const auto& [name, bytes, count] :
       {std::tuple("p.jsonl.gz", gzipped(row), 1), std::tuple("p.json.gz", gzipped("[" + row + "]"), 1),
        std::tuple("p.csv.gz", gzipped("problem,answer\n1+1?,2\n"), 1), std::tuple("p.jsonl.gz", two, 2)}) {
    const std::string path = path_join(folder, name);
    write_file(path, bytes);
    const std::vector<Problem> problems = read_problems({path});
    ASSERT_EQ(std::ssize(problems), count) << name;
    EXPECT_EQ(problems[0].text, "1+1?");
    EXPECT_EQ(problems[0].source, "p");
  }
  const std::string path = path_join(folder, "b.jsonl.gz"), whole = gzipped(row);
  for (size_t size = 2; size < whole.size(); ++size) {
    write_file(path, whole.substr(0, size));
    EXPECT_THROW(read_problems({path}), Error) << size;
  }
  for (size_t at = 0; at < whole.size(); ++at) {  // never a crash, and the check sum notices what the format does not
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0x5a);
    write_file(path, broken);
    try {
      EXPECT_EQ(read_problems({path}).at(0).text, "1+1?") << at;
    } catch (const Error&) {
    }
  }
  write_file(path, whole + "rest");
  EXPECT_THROW(read_problems({path}), Error);
  EXPECT_THROW(inflate_all(gzipped(std::string(1 << 20, 'a')), Packing::gzip, 1 << 19, "f", ErrorKind::limit), Error);
  remove_all(folder);
}

}  // namespace
}  // namespace ucas
