#pragma once
// Seeded random numbers with the same sequence on every platform (std distributions differ between libraries).

#include <cstdint>

namespace headscope {

/// SplitMix64 (Steele, Lea & Flood 2014). Small, fast, any seed is a good seed. Not for cryptography.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, 1) with 53 random bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Uniform integer in [0, n); n > 0. The bias of n / 2^64 is far below anything measurable here.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  /// Standard normal (Box-Muller).
  float normal();

 private:
  std::uint64_t state_;
};

}  // namespace headscope
