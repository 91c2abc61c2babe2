// One side of a comparison of kernels (gpu_kernels.cpp): the buffers of a call, and what of them is to be compared.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include <limits>
#include <vector>

#include "support/engine/gpu_kernels.h"

namespace ucas::testing {

inline constexpr double kOfFloat = 1e-5;
inline constexpr double kOfBf16 =
    1.0 / 128;  // its last place: which way a number is rounded hangs on a sum's last bits
inline constexpr double kOfDouble = 1e-11;
// A draw on the edge between two tokens may fall to either side: one of some forty.
inline constexpr double kOfSampledTokens = 0.03;
inline constexpr float kEpsOfCheck = 1e-6f;
inline constexpr double kNoNumber = std::numeric_limits<double>::infinity();

inline double of_bound(double difference, double bound) {
  if (bound > 0) return difference / bound;
  return difference > 0 ? kNoNumber : 0;
}

// Uniform with variance 1: splitmix64, where the generator of draws would take most of a check's time.
class CheckNoise {
 public:
  explicit CheckNoise(uint64_t seed) : state_(seed) {}
  float next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (static_cast<float>((z ^ z >> 31) >> 40) * 0x1p-23f - 1) * 1.7320508f;
  }

 private:
  uint64_t state_;
};

// Buffers, whose numbers depend on the order in which they are asked for alone, and a call. Timed, it has numbers of
// the device's own making instead.
class CheckSide {
 public:
  CheckSide(const Kernels& kernels, bool timed) : kernels_(kernels), timed_(timed) {}

  bool timed() const { return timed_; }
  const Kernels& kernels() const { return kernels_; }
  at::Tensor numbers(int64_t n, float scale) { return keep(random(n, scale, 0)); }
  float* floats(int64_t n, float scale = 1, float mean = 0) { return begin_of<float>(random(n, scale, mean)); }
  Bf16* narrow(int64_t n, float scale = 1) { return begin_of<Bf16>(random(n, scale, 0).to(at::kBFloat16)); }
  int32_t* ids(const std::vector<int32_t>& values) { return begin_of<int32_t>(on_device(values, kernels_.device)); }
  template <class T>
  T* bytes(const std::vector<T>& values) {
    const auto n = static_cast<int64_t>(values.size() * sizeof(T));
    const at::Tensor host = at::from_blob(const_cast<T*>(values.data()), {n}, at::kByte);
    return static_cast<T*>(keep(host.to(kernels_.device, at::kByte, false, true)).mutable_data_ptr());
  }

  // Written by the call, and compared. Behind it lies what no call may touch.
  at::Tensor out(int64_t n, at::ScalarType type, double bound = -1) {
    const at::Tensor all = at::full({n + kMargin}, kUntouched, at::TensorOptions().dtype(type).device(kernels_.device));
    keep(all);
    margins_.push_back(all.narrow(0, n, kMargin));
    const at::Tensor numbers = all.narrow(0, 0, n);
    show(numbers, bound);
    return numbers;
  }
  float* out_floats(int64_t n, double bound = kOfFloat) { return out(n, at::kFloat, bound).data_ptr<float>(); }
  Bf16* out_narrow(int64_t n) { return data<Bf16>(out(n, at::kBFloat16, kOfBf16)); }
  // Changed in place.
  float* changed_floats(int64_t n, float scale = 1, float mean = 0) {
    const at::Tensor x = out(n, at::kFloat, kOfFloat);
    x.copy_(random(n, scale, mean));
    return x.data_ptr<float>();
  }
  Bf16* changed_narrow(int64_t n) {
    const at::Tensor x = out(n, at::kBFloat16, kOfBf16);
    x.copy_(random(n, 1, 0));
    return data<Bf16>(x);
  }
  void show(const at::Tensor& numbers, double bound) { shown_.push_back({numbers, bound, false}); }
  void show_rows(const at::Tensor& rows) { shown_.push_back({rows, kOfSampledTokens, true}); }
  at::Tensor room(int64_t n, at::ScalarType type) {
    return keep(at::empty({n}, at::TensorOptions().dtype(type).device(kernels_.device)));
  }

  // `moved`: the fewest bytes that it can read and write.
  template <class Call>
  void call(int64_t moved, Call call) {
    const auto once = [&] { call(kernels_.table, kernels_.stream()); };
    if (!timed_) return once();
    constexpr int kTimes = 10;
    const double seconds = seconds_of(kernels_.device, [&] {
      for (int i = 0; i < kTimes; ++i) once();
    });
    bandwidth_ = static_cast<double>(moved) * kTimes / seconds;
  }

  double bandwidth() const { return bandwidth_; }

  // The output that is furthest from `reference`, measured by its own bound.
  void compare(const CheckSide& reference, KernelFinding& worst) const {
    for (const at::Tensor& margin : margins_) {
      if (!margin.eq(kUntouched).all().item<bool>()) worst = {worst.what, kNoNumber, kOfFloat};
    }
    for (size_t i = 0; i < shown_.size(); ++i) {
      const at::Tensor got = shown_[i].numbers.cpu(), want = reference.shown_[i].numbers.cpu();
      const double bound = shown_[i].bound;
      const double difference = shown_[i].by_row ? rows_apart(got, want) : difference_of(got, want);
      if (worst.difference < 0 || of_bound(difference, bound) > of_bound(worst.difference, worst.bound)) {
        worst = {worst.what, difference, bound};
      }
    }
  }

 private:
  static constexpr int64_t kMargin = 64;
  static constexpr double kUntouched = 4;  // exact in every type
  struct Shown {
    at::Tensor numbers;
    double bound;
    bool by_row;
  };

  at::Tensor keep(const at::Tensor& x) {
    kept_.push_back(x);
    return x;
  }
  template <class T>
  T* begin_of(const at::Tensor& x) {
    return static_cast<T*>(keep(x).mutable_data_ptr());
  }
  at::Tensor random(int64_t n, float scale, float mean) {
    const auto options = at::TensorOptions().dtype(at::kFloat);
    if (timed_) return at::randn({n}, options.device(kernels_.device)).mul_(scale).add_(mean);
    const at::Tensor host = at::empty({n}, options);
    CheckNoise noise(++asked_);
    for (int64_t i = 0; i < n; ++i) host.data_ptr<float>()[i] = scale * noise.next() + mean;
    return host.to(kernels_.device);
  }
  // The share of rows in which a number is another one than f32's last places explain.
  static double rows_apart(const at::Tensor& got, const at::Tensor& want) {
    const at::Tensor near = (got - want).abs().le(want.abs().add(1).mul(1e-4));
    return 1 - near.all(1).to(at::kDouble).mean().item<double>();
  }

  const Kernels& kernels_;
  const bool timed_;
  uint64_t asked_ = 0;
  double bandwidth_ = 0;
  std::vector<at::Tensor> kept_, margins_;
  std::vector<Shown> shown_;
};

}  // namespace ucas::testing
