#include <limits>

#include "core/cuda/attention_kernels.h"

namespace headscope::cuda {
namespace {

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

__device__ Row row_of(const AttentionTask& t, const HeadTerms& h, int query) {
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

__device__ float score(const AttentionTask& t, const HeadTerms& h, const Row& row, int key, float dot) {
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

__device__ Peak shuffled(const Peak& p, int lane) {
  Peak other;
  other.most = __shfl_xor_sync(0xffffffffu, p.most, lane);
  other.key = __shfl_xor_sync(0xffffffffu, p.key, lane);
  other.sum = __shfl_xor_sync(0xffffffffu, p.sum, lane);
  return other;
}

/// What turns scores of a row into weights: p = e^(s − most) · by.
struct Softmax {
  float most = 0, by = 0, log_z = 0;  // log of Σ e^(s − most), the sink's share in it
};

__device__ Softmax softmax_of(const Peak& peak, float sink) {
  Softmax out;
  if (peak.none()) return out;
  out.most = fmaxf(peak.most, sink);
  double z = static_cast<double>(peak.sum) * exp(static_cast<double>(peak.most) - static_cast<double>(out.most));
  if (sink != -infinity) z += exp(static_cast<double>(sink) - static_cast<double>(out.most));
  out.by = static_cast<float>(1.0 / z);
  out.log_z = static_cast<float>(log(z));
  return out;
}

/// Sums over the keys of a row: of e = e^(s − most) and e (s − most), those of key 0 apart, since what stands without
/// it may be little beside it.
struct Sums {
  float rest = 0, slope = 0, first = 0, first_slope = 0;
  float duplicate = 0, induction = 0;  // of weights
};

constexpr float nothing = -110.0f;  // e^that is 0 in float32: what a masked score stands for

/// To the last bits, or, beside products of 11 bits, to 2 units of 24.
template <bool exact>
__device__ float exponential(float x) {
  return exact ? expf(x) : __expf(x);
}

__device__ void tell(const AttentionTask& t, int head, const Row& row, const Peak& peak, const Softmax& soft,
                     const Sums& sums) {
  const StatsRoom& s = t.stats;
  const Index at = static_cast<Index>(head) * t.n_query + row.query;
  const bool none = peak.none();
  s.log_sum_exp[at] = none ? -static_cast<double>(infinity)
                           : static_cast<double>(soft.most) -
                                 log(static_cast<double>(soft.by));  // ln Z, of 1 / Z as the weights use it
  // −Σ p ln p = Σ p (ln Z − (s − most))
  s.entropy[at] =
      none ? 0.0f : fmaxf(0.0f, soft.by * ((sums.rest + sums.first) * soft.log_z - (sums.slope + sums.first_slope)));
  s.entropy_without_first[at] = none                       ? not_a_number
                                : row.keys.x > 0           ? s.entropy[at]
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

__device__ void add_mass(unsigned long long* to, float mass) {
  if (mass > 0.0f) atomicAdd(to, static_cast<unsigned long long>(static_cast<double>(mass) * 0x1p40 + 0.5));
}

/// Weights are not negative, and such floats are ordered as whole numbers are.
__device__ void raise(float* to, float value) {
  if (value > 0.0f) atomicMax(reinterpret_cast<int*>(to), __float_as_int(value));
}

// --- tiles --------------------------------------------------------------------------------------------------------

constexpr int side = 64;      // queries and keys of a tile
constexpr int threads = 128;  // 4 warps of 16 queries each, once or twice
constexpr int pitch = side + 4;
constexpr int most_bins = side / 2 + 1;

template <int D>
constexpr int room_floats =
    (2 * side * (D + 4) + side * pitch + most_bins * most_bins + 3) / 4 * 4;  // keys, values; weights; bins
template <int D>
constexpr std::size_t tiles_bytes(int halves) {
  return static_cast<std::size_t>(halves) * sizeof(float) * room_floats<D>;
}

// Products by the tensor cores, which read numbers cut to 10 bits behind the point. Where every bit shall count a
// number is the sum of two such, and three products give theirs but for the last bit or two of 24 (Ootomo & Yokota,
// Recovering single precision accuracy from Tensor Cores, 2022).

__device__ unsigned int cut(float x) {
  unsigned int out;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(x));
  return out;
}

template <bool exact>
struct Cut {
  unsigned int high, low = 0;
  __device__ explicit Cut(float x) : high(cut(x)) {
    if (exact) low = cut(x - __uint_as_float(high));
  }
};

/// sum (16 × 8) += a (16 × 8) · b (8 × 8), shared out over a warp as the instruction has it: with g = lane / 4 and
/// t = lane % 4, a: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4); b: (t, g), (t + 4, g); sum: (g, 2t), (g, 2t + 1),
/// (g + 8, 2t), (g + 8, 2t + 1).
__device__ void multiply_add(float sum[4], const unsigned int a[4], unsigned int b0, unsigned int b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <bool exact>
struct Left {
  unsigned int high[4], low[4];
  __device__ explicit Left(const float x[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Cut<exact> c(x[i]);
      high[i] = c.high;
      low[i] = c.low;
    }
  }
  __device__ void multiply_add(float sum[4], float b0, float b1) const {
    if (!exact) return cuda::multiply_add(sum, high, __float_as_uint(b0), __float_as_uint(b1));  // cut already
    const Cut<exact> c0(b0), c1(b1);
    cuda::multiply_add(sum, low, c0.high, c1.high);
    cuda::multiply_add(sum, high, c0.low, c1.low);
    cuda::multiply_add(sum, high, c0.high, c1.high);
  }
};

/// 64 rows of x into `to` [row][D + 4], zeros where there are none. `by_four`: they can be read four numbers at once.
template <int D, bool exact>
__device__ void load_rows(const float* x, Index row_stride, int first, int rows, int d, bool by_four, float* to) {
  constexpr int quarter = D / 4;
  for (int i = threadIdx.x % threads; i < side * quarter; i += threads) {
    const int at = i % quarter * 4, row = i / quarter;
    float4 four = make_float4(0, 0, 0, 0);
    if (first + row < rows) {
      const float* const from = x + (first + row) * row_stride + at;
      if (by_four) {
        if (at < d) four = *reinterpret_cast<const float4*>(from);
      } else {
        if (at < d) four.x = from[0];
        if (at + 1 < d) four.y = from[1];
        if (at + 2 < d) four.z = from[2];
        if (at + 3 < d) four.w = from[3];
      }
    }
    if (!exact) {  // cut once here rather than by every warp
      four.x = __uint_as_float(cut(four.x));
      four.y = __uint_as_float(cut(four.y));
      four.z = __uint_as_float(cut(four.z));
      four.w = __uint_as_float(cut(four.w));
    }
    *reinterpret_cast<float4*>(to + row * (D + 4) + at) = four;
  }
}

/// Scores' products of a warp's 16 queries (of which q are this lane's shares) with the 64 keys.
template <int D, bool exact>
__device__ void products(const float q[D / 8][4], const float* keys, int g, int t, float dot[8][4]) {
#pragma unroll
  for (int j = 0; j < 8; ++j)
#pragma unroll
    for (int c = 0; c < 4; ++c) dot[j][c] = 0;
#pragma unroll
  for (int i = 0; i < D / 8; ++i) {
    const Left<exact> left(q[i]);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float* const key = keys + (8 * j + g) * (D + 4) + 8 * i + t;
      left.multiply_add(dot[j], key[0], key[4]);
    }
  }
}

/// Products → scores, −∞ where the key is not seen. `simple`: they are scaled and nothing else.
__device__ void scores(const AttentionTask& t, const HeadTerms& h, bool simple, const Row rows[2], int key0, int quad,
                       float dot[8][4]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (simple) {
      const auto count = static_cast<unsigned int>(rows[r].keys.y - rows[r].keys.x);
      const auto from = static_cast<unsigned int>(key0 + 2 * quad - rows[r].keys.x);
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& s = dot[j][2 * r + c];
          s = from + static_cast<unsigned int>(8 * j + c) < count ? h.scale * s : -infinity;
        }
    } else {
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int c = 0; c < 2; ++c)
          dot[j][2 * r + c] = score(t, h, rows[r], key0 + 8 * j + 2 * quad + c, dot[j][2 * r + c]);
    }
  }
}

/// `halves`: 1, or 2 where there are too few blocks to keep the card busy: then every other tile of keys is another
/// four warps', and what both found is put together.
template <int D, bool exact, int halves>
__global__ void __launch_bounds__(halves* threads, halves == 1 && D <= 64 ? (exact ? 2 : 3) : 1)
    tiles_kernel(const AttentionTask task) {
  const AttentionTask& t = task;
  extern __shared__ __align__(16) float shared[];
  const int half = threadIdx.x / threads, me = threadIdx.x % threads;
  float* const keys = shared + half * room_floats<D>;  // [key][D + 4]
  float* const values = keys + side * (D + 4);         // likewise
  float* const weights = values + side * (D + 4);      // [query][pitch]
  float* const bins = weights + side * pitch;
  const int lane = me % 32, warp = me / 32, g = lane / 4, quad = lane % 4;
  const int tiles = (t.n_query + side - 1) / side;
  const int first = (tiles - 1 - static_cast<int>(blockIdx.x)) * side;  // causal: the longest first
  const int head = blockIdx.y, kv = head / (t.heads / t.kv_heads);
  const HeadTerms h = t.head[head];
  const float* const k = t.k + kv * t.k_head;
  const float* const v = t.v + kv * t.v_head;
  const int local[2] = {16 * warp + g, 16 * warp + g + 8};  // this lane's queries within the tile

  float q[D / 8][4];
#pragma unroll
  for (int i = 0; i < D / 8; ++i)
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int query = first + local[c % 2], at = 8 * i + quad + c / 2 * 4;
      q[i][c] = query < t.n_query && at < t.d ? t.q[query * t.q_row + head * t.q_head + at] : 0.0f;
    }

  const bool simple = h.rows < 0 && h.cap == 0 && h.slope == 0;
  __shared__ int labels_of[halves][side + 1];
  int* const labels = labels_of[half];
  Row rows[2];
  __shared__ int hull[2];
  if (threadIdx.x == 0) hull[0] = t.n_key, hull[1] = 0;
  __syncthreads();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    rows[r] = row_of(t, h, first + local[r]);
    if (rows[r].keys.x < rows[r].keys.y) {
      atomicMin(&hull[0], rows[r].keys.x);
      atomicMax(&hull[1], rows[r].keys.y);
    }
  }
  __syncthreads();
  const int begin = hull[0] / side * side, end = hull[1];

  Peak peaks[2];
  for (int of_all = begin; of_all < end; of_all += halves * side) {
    const int key0 = of_all + half * side;
    __syncthreads();
    load_rows<D, exact>(k, t.k_row, key0, t.n_key, t.d, t.by_four, keys);
    __syncthreads();
    float dot[8][4];
    products<D, exact>(q, keys, g, quad, dot);
    scores(t, h, simple, rows, key0, quad, dot);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      Peak own;
#pragma unroll
      for (int j = 0; j < 8; ++j) own.most = fmaxf(own.most, fmaxf(dot[j][2 * r], dot[j][2 * r + 1]));
      const float base = own.most == -infinity ? 0.0f : own.most;
#pragma unroll
      for (int j = 0; j < 8; ++j)
        own.sum += exponential<exact>(dot[j][2 * r] - base) + exponential<exact>(dot[j][2 * r + 1] - base);
      if (own.most > peaks[r].most)
#pragma unroll
        for (int j = 7; j >= 0; --j)
#pragma unroll
          for (int c = 1; c >= 0; --c)
            if (dot[j][2 * r + c] == own.most) own.key = key0 + 8 * j + 2 * quad + c;  // the first of equals stays
      peaks[r].join(own);
    }
  }
  Softmax soft[2];
  int label[2] = {};
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    for (int other = 2; other > 0; other /= 2) peaks[r].join(shuffled(peaks[r], other));
    if (halves > 1) {
      __shared__ float most_of[halves][side], sum_of[halves][side];
      __shared__ int key_of[halves][side];
      most_of[half][local[r]] = peaks[r].most;
      sum_of[half][local[r]] = peaks[r].sum;
      key_of[half][local[r]] = peaks[r].key;
      __syncthreads();
      Peak other;
      other.most = most_of[1 - half][local[r]];
      other.sum = sum_of[1 - half][local[r]];
      other.key = key_of[1 - half][local[r]];
      if (half == 0)
        peaks[r].join(other);
      else  // in one order, so that both come to the same bits
        other.join(peaks[r]), peaks[r] = other;
    }
    soft[r] = softmax_of(peaks[r], rows[r].sink);
    if (t.labels && rows[r].query < t.n_query) label[r] = t.labels[t.offset + rows[r].query];
  }

  Sums sums[2];
  float out[D / 8][4] = {};
  const bool stats = t.stats.log_sum_exp != nullptr;
  const int bin = t.stats.bin, row0 = first / bin;
  const bool pooled = stats && t.stats.overview && bin > 1;
  for (int of_all = begin; of_all < end; of_all += halves * side) {
    const int key0 = of_all + half * side;
    __syncthreads();
    load_rows<D, exact>(k, t.k_row, key0, t.n_key, t.d, t.by_four, keys);
    load_rows<D, exact>(v, t.v_row, key0, t.n_key, t.d_value, t.by_four, values);
    if (pooled)
      for (int i = me; i < most_bins * most_bins; i += threads) bins[i] = 0;
    if (t.labels)
      for (int i = me; i <= side; i += threads)  // of the key before, too
        labels[i] = key0 + i > 0 && key0 + i <= t.n_key ? t.labels[key0 + i - 1] : -1;
    __syncthreads();
    float p[8][4];
    products<D, exact>(q, keys, g, quad, p);
    scores(t, h, simple, rows, key0, quad, p);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const bool leads = key0 + quad == 0;  // this lane's first key is key 0
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& weight = p[j][2 * r + c];
          const float below = fmaxf(weight - soft[r].most, nothing), e = exponential<exact>(below);
          if (j == 0 && c == 0 && leads) {
            sums[r].first = e;
            sums[r].first_slope = e * below;
          } else {
            sums[r].rest += e;
            sums[r].slope += e * below;
          }
          weight = e * soft[r].by;
        }
      if (stats)
#pragma unroll
        for (int j = 0; j < 8; ++j)
          *reinterpret_cast<float2*>(weights + local[r] * pitch + 8 * j + 2 * quad) =
              make_float2(p[j][2 * r], p[j][2 * r + 1]);
      const int position = t.offset + rows[r].query;
      if (t.labels)
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            const int at = 8 * j + 2 * quad + c, key = key0 + at;
            if (labels[at + 1] == label[r] && key < position) sums[r].duplicate += p[j][2 * r + c];
            if (labels[at] == label[r] && key <= position) sums[r].induction += p[j][2 * r + c];
          }
      if (t.weights && rows[r].query < t.n_query)
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
          for (int c = 0; c < 2; ++c)
            if (const int key = key0 + 8 * j + 2 * quad + c; key < t.n_key)
              t.weights[(static_cast<Index>(head) * t.n_query + rows[r].query) * t.n_key + key] = p[j][2 * r + c];
    }
    // Of eight keys the lane holds weights 2t and 2t + 1; they take the places t and t + 4 of the product's left
    // side, so that values take them too.
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float turned[4] = {p[j][0], p[j][2], p[j][1], p[j][3]};
      const Left<exact> left(turned);
      const float* const value = values + (8 * j + 2 * quad) * (D + 4) + g;
#pragma unroll
      for (int i = 0; i < D / 8; ++i) left.multiply_add(out[i], value[8 * i], value[D + 4 + 8 * i]);
    }
    if (!stats) continue;
    __syncthreads();
    if (me < side) {  // a column each: its sum, and its largest in every bin
      const int column = me, key = key0 + column, bin_column = key / bin - key0 / bin;
      float sum = 0;
      if (pooled) {
        int stop = bin - first % bin;  // the first row of the next bin
        for (int row = 0, bin_row = 0; row < side; ++bin_row, stop += bin) {
          float most = 0;
#pragma unroll 8
          for (const int last = min(stop, side); row < last; ++row) {
            const float weight = weights[row * pitch + column];
            sum += weight;
            most = fmaxf(most, weight);
          }
          raise(&bins[bin_row * most_bins + bin_column], most);
        }
      } else {
#pragma unroll 16
        for (int row = 0; row < side; ++row) sum += weights[row * pitch + column];
      }
      if (key < t.n_key) add_mass(t.stats.column + static_cast<Index>(head) * t.n_key + key, sum);
    } else {  // two diagonals each, that have 64 cells together: query − key = away and away − 64
      const int away = me - side;
      float later = 0, earlier = 0;
#pragma unroll 8
      for (int row = away; row < side; ++row) later += weights[row * pitch + row - away];
#pragma unroll 8
      for (int row = 0; row < away; ++row) earlier += weights[row * pitch + row - away + side];
      unsigned long long* const mass = t.stats.distance + static_cast<Index>(head) * (t.n_query + t.n_key - 1) +
                                       (first - key0 + t.n_key - 1);  // of query − key = 0 within the tile
      if (later > 0.0f) add_mass(mass + away, later);
      if (earlier > 0.0f) add_mass(mass + away - side, earlier);
    }
    if (!pooled) continue;
    __syncthreads();
    const int column0 = key0 / bin;
    for (int i = me; i < most_bins * most_bins; i += threads) {
      const int row = row0 + i / most_bins, column = column0 + i % most_bins;
      if (bins[i] > 0.0f && row < t.stats.overview_rows && column < t.stats.overview_columns)
        raise(t.stats.overview + (static_cast<Index>(head) * t.stats.overview_rows + row) * t.stats.overview_columns +
                  column,
              bins[i]);
    }
  }

  if (halves > 1) {  // the second half's sums and share of z, by way of the first half's room
    float* const room = shared + me;
    float* const kept[12] = {&sums[0].rest,      &sums[0].slope,       &sums[0].first,     &sums[0].first_slope,
                             &sums[0].duplicate, &sums[0].induction,   &sums[1].rest,      &sums[1].slope,
                             &sums[1].first,     &sums[1].first_slope, &sums[1].duplicate, &sums[1].induction};
    __syncthreads();
    if (half == 1) {
#pragma unroll
      for (int i = 0; i < D / 8; ++i)
#pragma unroll
        for (int c = 0; c < 4; ++c) room[(4 * i + c) * threads] = out[i][c];
#pragma unroll
      for (int i = 0; i < 12; ++i) room[(D / 2 + i) * threads] = *kept[i];
    }
    __syncthreads();
    if (half == 1) return;
#pragma unroll
    for (int i = 0; i < D / 8; ++i)
#pragma unroll
      for (int c = 0; c < 4; ++c) out[i][c] += room[(4 * i + c) * threads];
#pragma unroll
    for (int i = 0; i < 12; ++i) *kept[i] += room[(D / 2 + i) * threads];
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (stats) {
      float* const parts[6] = {&sums[r].rest,        &sums[r].slope,     &sums[r].first,
                               &sums[r].first_slope, &sums[r].duplicate, &sums[r].induction};
#pragma unroll
      for (int i = 0; i < 6; ++i)
        for (int other = 2; other > 0; other /= 2) *parts[i] += __shfl_xor_sync(0xffffffffu, *parts[i], other);
      if (quad == 0 && rows[r].query < t.n_query) tell(t, head, rows[r], peaks[r], soft[r], sums[r]);
    }
    if (rows[r].query >= t.n_query) continue;
    float* const z = t.z + rows[r].query * t.z_row + head * t.z_head;
#pragma unroll
    for (int i = 0; i < D / 8; ++i)
#pragma unroll
      for (int c = 0; c < 2; ++c)
        if (const int at = 8 * i + 2 * quad + c; at < t.d_value) z[at] = out[i][2 * r + c];
  }
}

template <int D, bool exact, int halves>
void run_tiles(const AttentionTask& task, cudaStream_t stream) {
  cudaFuncSetAttribute(tiles_kernel<D, exact, halves>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(tiles_bytes<D>(halves)));  // of this card; a refusal is the launch's error
  const dim3 grid(static_cast<unsigned int>((task.n_query + side - 1) / side), static_cast<unsigned int>(task.heads));
  tiles_kernel<D, exact, halves><<<grid, halves * threads, tiles_bytes<D>(halves), stream>>>(task);
}

template <int D>
void run_tiles(const AttentionTask& task, Room room, cudaStream_t stream) {
  const int blocks = (task.n_query + side - 1) / side * task.heads;
  const bool twice = blocks < 3 * room.processors && tiles_bytes<D>(2) <= room.shared_bytes;
  if (task.exact)
    twice ? run_tiles<D, true, 2>(task, stream) : run_tiles<D, true, 1>(task, stream);
  else
    twice ? run_tiles<D, false, 2>(task, stream) : run_tiles<D, false, 1>(task, stream);
}

int width_of(int d, int d_value) {
  return d > d_value ? d : d_value;
}

// --- rows ---------------------------------------------------------------------------------------------------------

constexpr int most_row_threads = 1024;

__device__ float block_sum(float x, float* room) {
  for (int lane = 16; lane > 0; lane /= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
  __syncthreads();
  if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = x;
  __syncthreads();
  float sum = 0;
  for (unsigned int w = 0; w < blockDim.x / 32; ++w) sum += room[w];
  return sum;
}

__global__ void __launch_bounds__(most_row_threads) rows_kernel(const AttentionTask t) {
  extern __shared__ __align__(16) float shared[];
  __shared__ float room[32];
  __shared__ Peak peak_room[32];
  const int query = t.first_query + blockIdx.x, head = blockIdx.y, kv = head / (t.heads / t.kv_heads);
  const HeadTerms h = t.head[head];
  const Row row = row_of(t, h, query);
  float* const q = shared;       // d
  float* const parts = q + t.d;  // blockDim.x: parts of z
  float* const p =
      t.scratch ? t.scratch + (static_cast<Index>(head) * gridDim.x + blockIdx.x) * t.n_key : parts + 4 * blockDim.x;
  for (int i = threadIdx.x; i < t.d; i += blockDim.x) q[i] = t.q[query * t.q_row + head * t.q_head + i];
  __syncthreads();

  const int lane = threadIdx.x % 8, group = threadIdx.x / 8, groups = blockDim.x / 8;
  const float* const k = t.k + kv * t.k_head;
  Peak peak;
  const int count = row.keys.y - row.keys.x;
  constexpr int at_once = 4;  // keys of a group of lanes, so that their loads are under way together
  for (int step = 0; step < (count + at_once * groups - 1) / (at_once * groups); ++step) {  // all lanes stay together
    float dots[at_once] = {};
#pragma unroll
    for (int u = 0; u < at_once; ++u) {
      const int key = row.keys.x + (step * at_once + u) * groups + group;
      if (key >= row.keys.y) continue;
      const float* const from = k + key * t.k_row;
      if (t.by_four) {
        for (int i = 4 * lane; i < t.d; i += 32) {
          const float4 four = __ldg(reinterpret_cast<const float4*>(from + i));
          dots[u] += q[i] * four.x + q[i + 1] * four.y + q[i + 2] * four.z + q[i + 3] * four.w;
        }
      } else {
        for (int i = lane; i < t.d; i += 8) dots[u] += q[i] * from[i];
      }
    }
#pragma unroll
    for (int u = 0; u < at_once; ++u) {
      float dot = dots[u];
      for (int other = 4; other > 0; other /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, other);
      const int key = row.keys.x + (step * at_once + u) * groups + group;
      const float s = score(t, h, row, key, dot);
      if (lane == 0 && key < row.keys.y) {
        p[key] = s;
        peak.take(s, key);
      }
    }
  }
  const auto of_warp = [](Peak& of) {
    for (int other = 16; other > 0; other /= 2) of.join(shuffled(of, other));
  };
  of_warp(peak);
  if (threadIdx.x % 32 == 0) peak_room[threadIdx.x / 32] = peak;
  __syncthreads();
  peak = threadIdx.x % 32 < blockDim.x / 32 ? peak_room[threadIdx.x % 32] : Peak{};
  of_warp(peak);
  const Softmax soft = softmax_of(peak, row.sink);
  const int label = t.labels ? t.labels[t.offset + query] : 0;

  Sums sums;
  const StatsRoom& s = t.stats;
  const bool stats = s.log_sum_exp != nullptr;
  for (int key = row.keys.x + static_cast<int>(threadIdx.x); key < row.keys.y; key += blockDim.x) {
    const float below = fmaxf(p[key] - soft.most, nothing), e = expf(below), weight = e * soft.by;
    p[key] = weight;
    if (!stats) continue;
    (key == 0 ? sums.first : sums.rest) += e;
    (key == 0 ? sums.first_slope : sums.slope) += e * below;
    if (t.labels) {
      const int position = t.offset + query;
      if (key < position && t.labels[key] == label) sums.duplicate += weight;
      if (key > 0 && key <= position && t.labels[key - 1] == label) sums.induction += weight;
    }
    if (t.weights) t.weights[(static_cast<Index>(head) * t.n_query + query) * t.n_key + key] = weight;
    add_mass(s.column + static_cast<Index>(head) * t.n_key + key, weight);
    add_mass(s.distance + static_cast<Index>(head) * (t.n_query + t.n_key - 1) + query - key + t.n_key - 1, weight);
    if (s.overview && s.bin > 1)
      raise(
          s.overview + (static_cast<Index>(head) * s.overview_rows + query / s.bin) * s.overview_columns + key / s.bin,
          weight);
  }
  if (stats) {
    Sums all;
    all.rest = block_sum(sums.rest, room);
    all.slope = block_sum(sums.slope, room);
    all.first = block_sum(sums.first, room);
    all.first_slope = block_sum(sums.first_slope, room);
    all.duplicate = block_sum(sums.duplicate, room);
    all.induction = block_sum(sums.induction, room);
    if (threadIdx.x == 0) tell(t, head, row, peak, soft, all);
  }
  __syncthreads();

  // z: so many threads side by side take the numbers of a value, four each where they can be read together, the others
  // the next keys.
  const int each = t.by_four ? 4 : 1, wanted = (t.d_value + each - 1) / each;
  int across = 1;
  while (across < wanted && across < static_cast<int>(blockDim.x)) across *= 2;
  const int at = threadIdx.x % across, turn = threadIdx.x / across, turns = blockDim.x / across;
  const float* const v = t.v + kv * t.v_head;
  for (int first = 0; first < wanted; first += across) {
    const int column = (first + at) * each;
    float sum[4] = {};
    if (column < t.d_value) {
      if (t.by_four) {
#pragma unroll 8
        for (int key = row.keys.x + turn; key < row.keys.y; key += turns) {
          const float4 four = __ldg(reinterpret_cast<const float4*>(v + key * t.v_row + column));
          const float weight = p[key];
          sum[0] += weight * four.x;
          sum[1] += weight * four.y;
          sum[2] += weight * four.z;
          sum[3] += weight * four.w;
        }
      } else {
#pragma unroll 8
        for (int key = row.keys.x + turn; key < row.keys.y; key += turns) sum[0] += p[key] * v[key * t.v_row + column];
      }
    }
    // Of several turns in one warp, then of all.
    for (int other = across; other < 32; other *= 2)
      for (int c = 0; c < each; ++c) sum[c] += __shfl_xor_sync(0xffffffffu, sum[c], other);
    const int shares = across < 32 ? blockDim.x / 32 : turns, mine = across < 32 ? threadIdx.x / 32 : turn;
    __syncthreads();
    if (across >= 32 || static_cast<int>(threadIdx.x % 32) < across)
      for (int c = 0; c < each; ++c) parts[(mine * across + at) * each + c] = sum[c];
    __syncthreads();
    for (int i = threadIdx.x; i < across * each; i += blockDim.x) {
      if (first * each + i >= t.d_value) continue;
      float total = 0;
      for (int other = 0; other < shares; ++other) total += parts[other * across * each + i];
      t.z[query * t.z_row + head * t.z_head + first * each + i] = total;
    }
  }
}

}  // namespace

bool tiles_take(int d, int d_value, Room room) {
  const int width = width_of(d, d_value);
  return width <= 128 && (width <= 32   ? tiles_bytes<32>(1)
                          : width <= 64 ? tiles_bytes<64>(1)
                                        : tiles_bytes<128>(1)) <= room.shared_bytes;
}

void attention_by_tiles(const AttentionTask& task, Room room, cudaStream_t stream) {
  const int width = width_of(task.d, task.d_value);
  if (width <= 32)
    run_tiles<32>(task, room, stream);
  else if (width <= 64)
    run_tiles<64>(task, room, stream);
  else
    run_tiles<128>(task, room, stream);
}

int row_room(int d) {
  constexpr int beside = 256;  // what else a block keeps
  return static_cast<int>(48 * 1024 / sizeof(float)) - beside - d - 4 * most_row_threads;
}

void attention_by_rows(const AttentionTask& task, int rows, cudaStream_t stream) {
  const unsigned int count = rows <= 16 ? most_row_threads : 256;
  const std::size_t bytes = sizeof(float) * (static_cast<std::size_t>(task.d) + 4 * count +
                                             static_cast<std::size_t>(task.scratch ? 0 : task.n_key));
  const dim3 grid(static_cast<unsigned int>(rows), static_cast<unsigned int>(task.heads));
  rows_kernel<<<grid, count, bytes, stream>>>(task);
}

}  // namespace headscope::cuda
