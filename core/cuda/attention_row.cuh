#pragma once
// What both kernels of attention do with a row: its scores, its softmax, what is told of it. Private to core/cuda.

#include <limits>

#include "core/cuda/attention_kernels.h"

namespace headscope::cuda {

using Index = std::int64_t;

// Below this share nothing but rounding is left of a row once its first key is dropped (core/trace/row_stats.cpp).
constexpr float nothing_left = 1e-30f;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// What one row's scores and weights need.
struct Row {
  int query;
  int2 keys;  // [x, y), empty for rows that are none
  float sink;
  RowTerms terms;
  const float* bias;  // of key 0, or null
};

__device__ inline Row row_of(const AttentionTask& t, const HeadTerms& h, int query) {
  Row row{query, {0, 0}, h.sink, {1, h.cap, h.sink}, nullptr};
  if (query >= t.n_query) return row;
  row.keys = t.ranges[static_cast<Index>(h.ranges) * t.n_query + query];
  if (h.rows >= 0) {
    row.terms = t.rows[static_cast<Index>(h.rows) * t.n_query + query];
    row.sink = row.terms.sink;
  }
  if (h.bias >= 0) {
    row.bias = t.biases + (static_cast<Index>(h.bias) * t.n_query + query) * t.n_key;
  }
  return row;
}

__device__ inline float score(const AttentionTask& t, const HeadTerms& h, const Row& row, int key, float dot) {
  if (key < row.keys.x || key >= row.keys.y) return -infinity;
  float s = h.scale * dot;
  if (row.terms.cap > 0) s = row.terms.cap * tanhf(s / row.terms.cap);
  if (h.rows >= 0) return row.bias ? row.terms.factor * s + row.bias[key] : row.terms.factor * s;
  if (h.slope != 0) s -= h.slope * fabsf(static_cast<float>(t.offset + row.query - key));
  return s;
}

/// The largest score, the first key that has it, and Σ e^(s − largest): of a part of a row, or of two parts together.
struct Peak {
  float most = -infinity;
  int key = 0x7fffffff;
  float sum = 0;
  __device__ void take(float s, int at) {
    if (s > most) {
      sum = sum * expf(most - s) + 1.0f;  // most = −∞: nothing so far
      most = s;
      key = at;
    } else if (s != -infinity) {  // NaN as well: it shall not be lost
      sum += expf(s - most);
    }
  }
  __device__ bool none() const { return most == -infinity && sum == 0.0f; }
  __device__ void join(const Peak& other) {
    if (other.none()) return;
    if (other.most > most) {
      sum = sum * expf(most - other.most) + other.sum;
      most = other.most;
      key = other.key;
    } else {
      sum += other.sum * expf(other.most - most);
      if (other.most == most && other.key < key) key = other.key;
    }
  }
};

__device__ inline Peak shuffled(const Peak& p, int lane) {
  Peak other;
  other.most = __shfl_xor_sync(0xffffffffu, p.most, lane);
  other.key = __shfl_xor_sync(0xffffffffu, p.key, lane);
  other.sum = __shfl_xor_sync(0xffffffffu, p.sum, lane);
  return other;
}

/// What turns scores of a row into weights: p = e^(s − most) · by.
struct Softmax {
  float most = 0, by = 0;  // by: 1 / Z, Z = Σ e^(s − most) with the sink's share in it
  __device__ double log_z() const { return -log(static_cast<double>(by)); }  // of 1 / Z as the weights use it
};

__device__ inline Softmax softmax_of(const Peak& peak, float sink) {
  Softmax out;
  if (peak.none()) return out;
  out.most = fmaxf(peak.most, sink);
  double z = static_cast<double>(peak.sum) * exp(static_cast<double>(peak.most) - static_cast<double>(out.most));
  if (sink != -infinity) z += exp(static_cast<double>(sink) - static_cast<double>(out.most));
  out.by = static_cast<float>(1.0 / z);
  return out;
}

/// Sums over the keys of a row: of e = e^(s − most) and e (s − most), those of key 0 apart, since what stands without
/// it may be little beside it.
struct Sums {
  float rest = 0, slope = 0, first = 0, first_slope = 0;
  float duplicate = 0, induction = 0;  // of weights
  /// All but key 0's, beside a score that is larger by −step: e^(s − most) is `by` of what it was.
  __device__ void rescale(float step, float by) {
    slope = by * (slope + step * rest);
    rest *= by;
    duplicate *= by;
    induction *= by;
  }
};

constexpr float nothing = -110.0f;  // e^that is 0 in float32: what a masked score stands for

__device__ inline void tell(const AttentionTask& t, int head, const Row& row, const Peak& peak, const Softmax& soft,
                            const Sums& sums) {
  const StatsRoom& s = t.stats;
  const Index at = static_cast<Index>(head) * t.n_query + row.query;
  const bool none = peak.none();
  const double log_z = soft.log_z();
  s.log_sum_exp[at] = none ? -static_cast<double>(infinity) : static_cast<double>(soft.most) + log_z;
  // −Σ p ln p = Σ p (ln Z − (s − most))
  s.entropy[at] = none ? 0.0f
                       : fmaxf(0.0f, soft.by * ((sums.rest + sums.first) * static_cast<float>(log_z) -
                                                (sums.slope + sums.first_slope)));
  const bool as_it_is = row.keys.x > 0 && row.sink == -infinity;  // what a sink took is no key's
  s.entropy_without_first[at] = none                       ? not_a_number
                                : as_it_is                 ? s.entropy[at]
                                : sums.rest < nothing_left ? not_a_number
                                                           : fmaxf(0.0f, logf(sums.rest) - sums.slope / sums.rest);
  s.max_weight[at] = none ? 0.0f : expf(peak.most - soft.most) * soft.by;
  s.max_key[at] = none ? -1 : peak.key;
  s.first[at] = sums.first * soft.by;
  if (s.duplicate) {
    s.duplicate[at] = sums.duplicate;
    s.induction[at] = sums.induction;
  }
}

__device__ inline void add_mass(unsigned long long* to, float mass) {
  if (mass > 0.0f) atomicAdd(to, mass_of(mass));
}

/// Weights are not negative, and such floats are ordered as whole numbers are.
__device__ inline void raise(float* to, float value) {
  if (value > 0.0f) atomicMax(reinterpret_cast<int*>(to), __float_as_int(value));
}

}  // namespace headscope::cuda
