#include "core/tensor/speed_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "core/base/thread_pool.h"
#include "core/tensor/tensor.h"

// This file is compiled once per instruction set by foreach_target.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/tensor/speed_limits.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::speed_limits {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// More chains of multiply-adds than a processor has in flight (two a cycle, four or five cycles each), and registers
// enough for them.
constexpr int kChains = 12;

/// Operations done; `seed` keeps the compiler from knowing the numbers.
double MultiplyAdds(Index rounds, float seed, float* out) {
  const D d;
  V sum[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sum[i] = hn::Set(d, seed + static_cast<float>(i));
  const V factor = hn::Set(d, 0.5f + seed), shift = hn::Set(d, 1 + seed);  // towards 2: nothing becomes subnormal
  for (Index round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sum[i] = hn::MulAdd(sum[i], factor, shift);
  }
  for (int i = 1; i < kChains; ++i) sum[0] = hn::Add(sum[0], sum[i]);
  *out = hn::GetLane(hn::SumOfLanes(d, sum[0]));
  return 2.0 * static_cast<double>(rounds) * kChains * static_cast<double>(hn::Lanes(d));
}

float Sum(const float* HWY_RESTRICT from, Index count) {
  const D d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  V sum[4];
  for (V& each : sum) each = hn::Zero(d);
  Index i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    for (Index ahead = 0; ahead < 4 * lanes; ahead += 16) __builtin_prefetch(from + i + 512 + ahead, 0, 3);
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) sum[part] = hn::Add(sum[part], hn::LoadU(d, from + i + part * lanes));
  }
  float rest = 0;
  for (; i < count; ++i) rest += from[i];
  return rest + hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]))));
}

}  // namespace HWY_NAMESPACE
}  // namespace headscope::speed_limits
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope {
namespace speed_limits {
HWY_EXPORT(MultiplyAdds);
HWY_EXPORT(Sum);
namespace {
double multiply_adds(Index rounds, float seed, float* out) {
  return HWY_DYNAMIC_DISPATCH(MultiplyAdds)(rounds, seed, out);
}
float sum(const float* from, Index count) {
  return HWY_DYNAMIC_DISPATCH(Sum)(from, count);
}
}  // namespace
}  // namespace speed_limits

namespace {

std::atomic<float> seen;  // what the loops came to, so that they are not left out

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

double measured_peak(ThreadPool& pool) {
  // As many tasks as threads would leave one idle that was held up when they were handed out.
  const int tasks = 8 * pool.threads();
  std::atomic<double> operations{0};
  const auto begin = std::chrono::steady_clock::now();
  pool.parallel(tasks, [&](int, int) {
    float result = 0;
    operations += speed_limits::multiply_adds(Index{40'000}, seen.load() * 0.0f, &result);
    seen = result * 0.0f;
  });
  return operations.load() / seconds_since(begin);
}

double seconds_to_read(std::span<const float> numbers, ThreadPool& pool) {
  constexpr std::size_t part = std::size_t{1} << 18;  // a megabyte
  const std::size_t parts = (numbers.size() + part - 1) / part;
  const auto begin = std::chrono::steady_clock::now();
  pool.parallel(static_cast<int>(parts), [&](int task, int) {
    const auto some = numbers.subspan(static_cast<std::size_t>(task) * part);
    const auto count = static_cast<Index>(std::min(part, some.size()));
    seen = speed_limits::sum(some.data(), count) * 0.0f;
  });
  return seconds_since(begin);
}

}  // namespace headscope
#endif
