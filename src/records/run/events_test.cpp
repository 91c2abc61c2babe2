#include "records/run/events.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/files/hash.h"
#include "records/run/run_directory.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

struct ReadEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string version;
  bool restart = false;
  std::vector<std::pair<std::string, float>> scalars;
};

// A reader of protocol buffers that knows wire types alone: what it is told of each field are its number and its bytes.
struct Message {
  std::string_view rest;
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(rest.at(0));
      rest.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }
  std::string_view take(size_t size) {
    EXPECT_LE(size, rest.size());
    const std::string_view taken = rest.substr(0, size);
    rest.remove_prefix(taken.size());
    return taken;
  }
  void each(const std::function<void(uint64_t field, std::string_view bytes, uint64_t number)>& use) {
    while (!rest.empty()) {
      const uint64_t key = varint();
      if ((key & 7) == 0) {
        const uint64_t number = varint();
        use(key >> 3, {}, number);
      } else {
        const size_t size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint();
        use(key >> 3, take(size), 0);
      }
    }
  }
};

template <class Number>
Number of_bytes(std::string_view bytes) {
  Number value{};
  EXPECT_EQ(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

bool checks(std::string_view bytes, std::string_view sum) {
  const uint32_t crc = crc32c(bytes);
  return of_bytes<uint32_t>(sum) == ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

std::vector<ReadEvent> read_events(const std::string& path) {
  const std::string file = read_file(path);
  std::vector<ReadEvent> events;
  for (Message records{file}; !records.rest.empty();) {
    const std::string_view length = records.take(8);
    EXPECT_TRUE(checks(length, records.take(4)));
    const std::string_view bytes = records.take(of_bytes<uint64_t>(length));
    EXPECT_TRUE(checks(bytes, records.take(4)));
    ReadEvent& event = events.emplace_back();
    Message{bytes}.each([&](uint64_t field, std::string_view content, uint64_t number) {
      if (field == 1) event.wall_time = of_bytes<double>(content);
      if (field == 2) event.step = static_cast<int64_t>(number);
      if (field == 3) event.version = content;
      if (field == 7) event.restart = content == "\x08\x01";
      if (field != 5) return;
      Message{content}.each([&](uint64_t, std::string_view value, uint64_t) {
        auto& [name, scalar] = event.scalars.emplace_back();
        Message{value}.each([&](uint64_t part, std::string_view of, uint64_t) {
          if (part == 1) name = of;
          if (part == 2) scalar = of_bytes<float>(of);
        });
      });
    });
  }
  return events;
}

// Steps with scalars, of all files of a folder.
std::vector<int64_t> steps_in(const std::string& folder) {
  std::vector<int64_t> steps;
  for (const std::string& name : list_directory(folder)) {
    for (const ReadEvent& event : read_events(path_join(folder, name)))
      if (!event.scalars.empty()) steps.push_back(event.step);
  }
  return steps;
}

class event_files : public ::testing::Test {
 protected:
  void write(int64_t first, int64_t last) {
    EventFile file(path_, first);
    for (int64_t step = first; step <= last; ++step)
      file.append(step, std::vector<std::pair<std::string, double>>{{"a", static_cast<double>(step)}});
  }
  std::string only_file() { return path_join(path_, list_directory(path_).front()); }
  testing::TemporaryDirectory folder_;
  std::string path_ = path_join(folder_.path(), "tensorboard");
};

TEST_F(event_files, hold_every_number_of_a_step_under_its_name) {
  EventFile file(path_, 0);
  file.append(0, std::vector<std::pair<std::string, double>>{{"val-core/x/acc/mean@1", 0.25}});
  file.append(300, std::vector<std::pair<std::string, double>>{
                       {"actor/lr", 1e-6}, {"n\xc3\xa4me \"of\"\n" + std::string(200, 'x'), 0}, {"bad", std::nan("")}});
  const std::vector<ReadEvent> events = read_events(only_file());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_TRUE(events[1].restart);
  EXPECT_EQ(events[1].step, 0);
  EXPECT_EQ(events[2].scalars, (std::vector<std::pair<std::string, float>>{{"val-core/x/acc/mean@1", 0.25F}}));
  EXPECT_EQ(events[3].step, 300);
  ASSERT_EQ(events[3].scalars.size(), 3u);
  EXPECT_EQ(events[3].scalars[0].second, 1e-6F);
  EXPECT_EQ(events[3].scalars[1].first, "n\xc3\xa4me \"of\"\n" + std::string(200, 'x'));
  EXPECT_TRUE(std::isnan(events[3].scalars[2].second));
  EXPECT_GT(events[3].wall_time, 1.7e9);
  EXPECT_GE(events[3].wall_time, events[0].wall_time);
}

TEST_F(event_files, of_a_resumed_run_have_no_step_twice_and_come_last) {
  write(1, 200);
  cut_events(path_, 150);
  write(151, 160);
  cut_events(path_, 140);
  write(141, 145);
  std::vector<int64_t> expected;
  for (int64_t step = 1; step <= 145; ++step) expected.push_back(step);
  EXPECT_EQ(steps_in(path_), expected);
  const std::vector<std::string> names = list_directory(path_);
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(read_events(path_join(path_, names[2]))[1].step, 141);
}

TEST_F(event_files, what_a_kill_tore_is_cut) {
  write(1, 3);
  const std::string whole = read_file(only_file());
  for (size_t lost : {1, 10, 20}) {
    write_file(only_file(), whole.substr(0, whole.size() - lost));
    cut_events(path_, 3);
    EXPECT_EQ(steps_in(path_), (std::vector<int64_t>{1, 2})) << lost;
  }
  std::string damaged = whole;
  damaged[damaged.size() - 6] ^= 1;
  write_file(only_file(), damaged);
  cut_events(path_, 3);
  EXPECT_EQ(steps_in(path_), (std::vector<int64_t>{1, 2}));
}

TEST_F(event_files, of_others_are_left_alone) {
  make_directories(path_);
  const std::string foreign = path_join(path_, "events.out.tfevents.1700000000.host.12.0");
  write_file(foreign, "not ours");
  cut_events(path_, 0);
  EXPECT_EQ(read_file(foreign), "not ours");
}

TEST_F(event_files, that_cannot_be_written_do_not_end_the_run) {
  write_file(path_, "a file where the folder should be");
  EventFile file(path_, 1);
  file.append(1, std::vector<std::pair<std::string, double>>{{"a", 1}});
  file.sync();
  EXPECT_EQ(read_file(path_), "a file where the folder should be");
}

TEST_F(event_files, are_cut_with_the_run_and_never_written_by_a_watcher) {
  const std::string path = path_join(folder_.path(), "run");
  const std::vector<std::pair<std::string, double>> values = {{"a", 1}};
  {
    RunDirectory run = RunDirectory::create(path, "", {});
    for (int64_t step = 1; step <= 4; ++step) run.append_events(step, values);
    run.sync();
    RunDirectory::watch(path).append_events(5, values);
  }
  RunDirectory run = RunDirectory::open(path);
  run.cut_after(2);
  run.append_events(3, values);
  EXPECT_EQ(steps_in(run.events()), (std::vector<int64_t>{1, 2, 3}));
}

}  // namespace
}  // namespace ucas
