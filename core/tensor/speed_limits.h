#pragma once
// What a processor cannot do faster, measured: how many multiply-adds its registers take, and how soon its memory gives
// up what it holds. A pass is bounded by the larger of its operations ÷ the first and its bytes of weights ÷ the
// second (the roofline of Williams, Waterman and Patterson 2009).

#include <span>

namespace headscope {

class ThreadPool;

/// Floating-point operations (two for a fused multiply-add of float32) per second of all threads together, from numbers
/// that never leave their registers. Takes about two milliseconds.
double measured_peak(ThreadPool& pool);

/// Seconds in which all threads together read these numbers once.
double seconds_to_read(std::span<const float> numbers, ThreadPool& pool);

}  // namespace headscope
