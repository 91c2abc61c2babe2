#include "records/run/events.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/files/hash.h"
#include "base/process/warning_counters.h"
#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {

namespace {

// A record: length (8 bytes, little endian), its checksum (4), the bytes, theirs (4). The bytes are a protocol buffer
// of type Event: 1 wall time (double), 2 step (varint), and one of 3 file version, 5 summary, 7 session log.
constexpr const char* kNameBegin = "events.out.tfevents.";
constexpr const char* kNameEnd = ".ucas";
constexpr int64_t kLengthBytes = 12, kSumBytes = 4;
constexpr uint64_t kLargestRecord = uint64_t{1} << 28;
constexpr size_t kStepAt = 10;  // of an event of ours: 09, wall time, 10, step
enum EventField : uint8_t { kFileVersion = 3, kSummary = 5, kSessionLog = 7 };

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

template <class Number>
void put_number(std::string& out, Number value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value > 127; value >>= 7) out.push_back(static_cast<char>(value | 128));
  out.push_back(static_cast<char>(value));
}

void put_text(std::string& out, uint8_t field, std::string_view text) {
  out.push_back(static_cast<char>(field << 3 | 2));
  put_varint(out, text.size());
  out += text;
}

std::string event_record(int64_t step, EventField field, std::string_view content) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::string event = "\x09";
  put_number(event, now);
  event += '\x10';
  put_varint(event, static_cast<uint64_t>(step));
  put_text(event, field, content);
  std::string out;
  put_number(out, static_cast<uint64_t>(event.size()));
  put_number(out, masked_crc(out));
  out += event;
  put_number(out, masked_crc(event));
  return out;
}

template <class Number>
Number event_number(std::string_view bytes, size_t at) {
  Number value;
  UCAS_CHECK(at + sizeof value <= bytes.size(), "a TFRecord must have its stated length");
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The highest number there is, of what is no event of ours.
int64_t step_of(std::string_view event) {
  uint64_t step = 0;
  for (size_t at = kStepAt, shift = 0; at < event.size() && shift < 63; ++at, shift += 7) {
    step |= static_cast<uint64_t>(event[at] & 127) << shift;
    if ((event[at] & 128) == 0) return static_cast<int64_t>(step);
  }
  return std::numeric_limits<int64_t>::max();
}

std::string bytes_at(const std::string& path, int64_t offset, int64_t size) {
  std::string bytes(static_cast<size_t>(size), '\0');
  read_at(path, offset, bytes.data(), size);
  return bytes;
}

// Bytes of the whole records of steps up to `step`, which come first.
int64_t kept_bytes(const std::string& path, int64_t step) {
  const int64_t size = file_size(path);
  int64_t at = 0;
  while (at + kLengthBytes + kSumBytes <= size) {
    const std::string head = bytes_at(path, at, kLengthBytes);
    const auto length = event_number<uint64_t>(head, 0);
    if (event_number<uint32_t>(head, 8) != masked_crc(std::string_view(head).substr(0, 8)) || length > kLargestRecord)
      break;
    const auto end = static_cast<int64_t>(length) + kSumBytes;
    if (at + kLengthBytes + end > size) break;
    const std::string body = bytes_at(path, at + kLengthBytes, end);
    const std::string_view event = std::string_view(body).substr(0, length);
    if (event_number<uint32_t>(body, length) != masked_crc(event) || step_of(event) > step) break;
    at += kLengthBytes + end;
  }
  return at;
}

// The seconds in the name of such a file; -1 if it is none.
int64_t seconds_of_name(std::string_view name) {
  if (!name.starts_with(kNameBegin) || !name.ends_with(kNameEnd)) return -1;
  name.remove_prefix(std::strlen(kNameBegin));
  name.remove_suffix(std::strlen(kNameEnd));
  int64_t seconds = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), seconds);
  return error == std::errc() && end == name.data() + name.size() ? seconds : -1;
}

}  // namespace

// TensorBoard reads the files of a folder in the order of their names, so this one must come last.
void EventFile::open() {
  make_directories(folder_);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  for (const std::string& name : list_directory(folder_)) seconds = std::max(seconds, seconds_of_name(name) + 1);
  file_ = std::make_unique<FileWriter>(path_join(folder_, str(kNameBegin, seconds, kNameEnd)));
  file_->write(event_record(0, kFileVersion, "brain.Event:2"));
  file_->write(
      event_record(first_, kSessionLog, "\x08\x01"));  // START: whatever was known of this step and later is void
}

void EventFile::attempt(const std::function<void()>& write) {
  if (failed_) return;
  try {
    write();
  } catch (const Error& failure) {
    failed_ = true;
    count_warning(Warning::event_file);
    warn(str("TensorBoard gets no more of this run: ", failure.what()));
  }
}

void EventFile::append(int64_t step, std::span<const std::pair<std::string, double>> values) {
  attempt([&] {
    if (!file_) open();
    std::string summary;
    for (const auto& [name, value] : values) {
      std::string scalar;
      put_text(scalar, 1, name);
      scalar += '\x15';
      put_number(scalar, static_cast<float>(value));
      put_text(summary, 1, scalar);
    }
    file_->write(event_record(step, kSummary, summary));
  });
}

void EventFile::sync() {
  if (file_) attempt([&] { file_->sync(); });
}

void cut_events(const std::string& folder, int64_t step) {
  if (!is_directory(folder)) return;
  for (const std::string& name : list_directory(folder)) {
    if (seconds_of_name(name) < 0) continue;
    const std::string path = path_join(folder, name);
    const int64_t kept = kept_bytes(path, step);
    if (kept < file_size(path)) truncate_file(path, kept);
  }
}

}  // namespace ucas
