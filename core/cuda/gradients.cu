#include <math_constants.h>

#include "core/cuda/gradients.h"
#include "core/cuda/launch.cuh"

namespace headscope::cuda {
namespace {

constexpr int warps = 4;  // of a block whose warps take a row each

__device__ inline void put(float* to, float value, bool add) {
  *to = add ? *to + value : value;
}

/// One warp for each row; `rows_of` takes its mean and 1 ÷ deviation.
__global__ void norm_back_kernel(const float* x, const float* gain, bool centered, const float* dy, Index rows,
                                 Index width, Index sets, float epsilon, float* rows_of, bool add, float* dx) {
  const Index row = blockIdx.x * static_cast<Index>(warps) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float *const in = x + row * width, *const d = dy + row * width, *const by = gain + row % sets * width;
  const float count = static_cast<float>(width);
  float mean = 0, squares = 0;
  if (centered) {
    for (Index i = lane; i < width; i += 32) mean += in[i];
    mean = warp_sum(mean) / count;
  }
  for (Index i = lane; i < width; i += 32) squares += (in[i] - mean) * (in[i] - mean);
  const float scale = 1.0f / sqrtf(warp_sum(squares) / count + epsilon);
  if (lane == 0) {
    rows_of[2 * row] = mean;
    rows_of[2 * row + 1] = scale;
  }
  if (!dx) return;
  float level = 0, slope = 0;
  for (Index i = lane; i < width; i += 32) {
    const float g = d[i] * by[i];
    level += g;
    slope += (in[i] - mean) * scale * g;
  }
  level = centered ? warp_sum(level) / count : 0.0f;
  slope = warp_sum(slope) / count;
  for (Index i = lane; i < width; i += 32)
    put(dx + row * width + i, scale * (d[i] * by[i] - level - (in[i] - mean) * scale * slope), add);
}

struct Two {
  float a, b;
  __device__ Two& operator+=(const Two& other) {
    a += other.a;
    b += other.b;
    return *this;
  }
};

/// out(column, Σ term(row, column)) over the rows [0, rows): a block has 32 columns, whose rows its `lanes` warps take
/// in turn.
template <int lanes, class Sum, class Term, class Out>
__global__ void __launch_bounds__(32 * lanes) column_sums_kernel(Index columns, Term term, Out out) {
  __shared__ Sum parts[lanes * 33];
  const int lane = threadIdx.x % 32, row_lane = threadIdx.x / 32;
  const Index column = blockIdx.x * Index{32} + lane, rows = out.rows();
  Sum sum{};
  if (column < columns) {
#pragma unroll 4
    for (Index row = row_lane; row < rows; row += lanes) sum += term(row, column);
  }
  parts[row_lane * 33 + lane] = sum;
  __syncthreads();
  if (row_lane > 0 || column >= columns) return;
  for (int k = 1; k < lanes; ++k) sum += parts[k * 33 + lane];
  out(column, sum);
}

constexpr int many = 32, some = 8;  // warps of a block over all rows, and over the few of one token

int strips(Index columns) {
  return static_cast<int>((columns + 31) / 32);
}

template <class Put>
struct AllRows {
  Index count;
  Put put;
  __device__ Index rows() const { return count; }
  template <class Sum>
  __device__ void operator()(Index column, const Sum& sum) const {
    put(column, sum);
  }
};

template <class Sum, class Term, class Put>
void sum_rows(Index rows, Index columns, cudaStream_t stream, Term term, Put put) {
  column_sums_kernel<many, Sum><<<strips(columns), 32 * many, 0, stream>>>(columns, term, AllRows<Put>{rows, put});
}

/// Of the group that blockIdx.y says.
struct GroupTerm {
  const float* d;
  Groups groups;
  Index width;
  __device__ float operator()(Index row, Index column) const {
    return d[static_cast<Index>(groups.order[groups.begin[blockIdx.y] + row]) * width + column];
  }
};
struct GroupOut {
  Groups groups;
  Index row_stride;
  float* table;
  __device__ Index rows() const { return groups.begin[blockIdx.y + 1] - groups.begin[blockIdx.y]; }
  __device__ void operator()(Index column, float sum) const {
    table[static_cast<Index>(groups.id[blockIdx.y]) * row_stride + column] += sum;
  }
};

constexpr int most_groups = 65'535;  // of one launch

__global__ void cross_entropy_kernel(const float* logits, const std::int32_t* targets, Index rows, Index vocab,
                                     float* rows_of, double* nats) {
  const Index row = blockIdx.x * static_cast<Index>(warps) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* const x = logits + row * vocab;
  const std::int32_t target = targets[row];
  if (target < 0) {
    if (lane == 0) nats[row] = 0;
    return;
  }
  float most = -CUDART_INF_F, sum = 0;
  for (Index i = lane; i < vocab; i += 32) most = fmaxf(most, x[i]);
  most = warp_max(most);
  for (Index i = lane; i < vocab; i += 32) sum += expf(x[i] - most);
  const double total = warp_sum(static_cast<double>(sum));
  if (lane > 0) return;
  rows_of[2 * row] = most;
  rows_of[2 * row + 1] = static_cast<float>(1.0 / total);
  nats[row] = static_cast<double>(most) + log(total) - static_cast<double>(x[target]);
}

/// Sums over a block in the order of its threads.
template <int threads>
__device__ double block_sum(double x) {
  __shared__ double parts[threads / 32];
  x = warp_sum(x);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  double sum = 0;
  for (int w = 0; w < threads / 32; ++w) sum += parts[w];
  return sum;
}

__global__ void sums_of_squares_kernel(const Part* parts, double* sums) {
  const Part part = parts[blockIdx.x];
  double sum = 0;
  for (int i = threadIdx.x; i < part.count; i += block) {
    const float g = part.gradient[i];
    sum += static_cast<double>(g * g);  // of float32, whose range it may leave
  }
  sum = block_sum<block>(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void adamw_kernel(AdamWRow row, const Part* parts) {
  const Part part = parts[blockIdx.x];
  for (int i = threadIdx.x; i < part.count; i += block) {
    const float g = row.gradient_scale * part.gradient[i];
    const float m = row.rest1 * g + row.beta1 * part.first[i];
    const float v = row.rest2 * (g * g) + row.beta2 * part.second[i];
    part.first[i] = m;
    part.second[i] = v;
    part.weight[i] = part.keep * part.weight[i] - row.rate * m / (sqrtf(row.second_scale * v) + row.epsilon);
  }
}

}  // namespace

void spread(const float* from, const std::array<Index, 4>& extents, const std::array<Index, 4>& strides, Index n,
            bool add, float* to, cudaStream_t stream) {
  const Index e1 = extents[1], e2 = extents[2], e3 = extents[3], s0 = strides[0], s1 = strides[1], s2 = strides[2],
              s3 = strides[3];
  each(n, stream, [=] __device__(Index i) {
    put(to + i / (e1 * e2 * e3) * s0 + i / (e2 * e3) % e1 * s1 + i / e3 % e2 * s2 + i % e3 * s3, from[i], add);
  });
}

void scale_back(const float* dy, float factor, Index n, bool add, float* dx, cudaStream_t stream) {
  each(n, stream, [=] __device__(Index i) { put(dx + i, factor * dy[i], add); });
}

void multiply_back(const float* dy, const float* other, Index n, bool add, float* dx, cudaStream_t stream) {
  each(n, stream, [=] __device__(Index i) { put(dx + i, dy[i] * other[i], add); });
}

void activate_back(Curve f, const float* x, const float* dy, Index n, bool add, float* dx, cudaStream_t stream) {
  switch (f) {
    case Curve::relu:
      return each(n, stream, [=] __device__(Index i) { put(dx + i, x[i] > 0 ? dy[i] : 0.0f, add); });
    case Curve::gelu:  // Φ(x) + x φ(x)
      return each(n, stream, [=] __device__(Index i) {
        const float v = x[i];
        put(dx + i, dy[i] * (normcdff(v) + v * 0.39894228040143268f * expf(-0.5f * v * v)), add);
      });
    case Curve::gelu_tanh:  // ½ (1 + tanh u) + ½ x (1 − tanh² u) u'
      return each(n, stream, [=] __device__(Index i) {
        const float v = x[i], bent = tanhf(0.7978845608028654f * (v + 0.044715f * v * v * v)),
                    slope = 0.7978845608028654f * (1.0f + 3 * 0.044715f * v * v);
        put(dx + i, dy[i] * 0.5f * (1.0f + bent + v * (1.0f - bent * bent) * slope), add);
      });
    case Curve::silu:  // σ (1 + x (1 − σ))
      return each(n, stream, [=] __device__(Index i) {
        const float v = x[i], sigma = 1.0f / (1.0f + expf(-v));
        put(dx + i, dy[i] * sigma * (1.0f + v * (1.0f - sigma)), add);
      });
  }
}

void norm_back(const float* x, const float* gain, bool centered, const float* dy, Index rows, Index width, Index sets,
               float epsilon, float* rows_of, bool add, float* dx, cudaStream_t stream) {
  norm_back_kernel<<<static_cast<int>((rows + warps - 1) / warps), 32 * warps, 0, stream>>>(
      x, gain, centered, dy, rows, width, sets, epsilon, rows_of, add, dx);
}

void norm_weights_back(const float* x, const float* rows_of, const float* dy, Index rows, Index width, Index sets,
                       Into gain, Into bias, cudaStream_t stream) {
  // Column c of part s: every row of that part.
  const Index columns = sets * width;
  const auto term = [=] __device__(Index turn, Index column) {
    const Index row = turn * sets + column / width, at = row * width + column % width;
    Two out{};
    if (row < rows) {
      out.b = dy[at];
      out.a = (x[at] - rows_of[2 * row]) * rows_of[2 * row + 1] * out.b;
    }
    return out;
  };
  sum_rows<Two>((rows + sets - 1) / sets, columns, stream, term, [=] __device__(Index column, const Two& sum) {
    if (gain.to) put(gain.to + column, sum.a, gain.add);
    if (bias.to) put(bias.to + column, sum.b, bias.add);
  });
}

void column_sums(const float* x, Index row_stride, Index rows, Index columns, bool add, float* out,
                 cudaStream_t stream) {
  sum_rows<float>(
      rows, columns, stream, [=] __device__(Index row, Index column) { return x[row * row_stride + column]; },
      [=] __device__(Index column, float sum) { put(out + column, sum, add); });
}

void gather_back(const float* d, Groups groups, Index width, Index row_stride, float* table, cudaStream_t stream) {
  for (Index first = 0; first < groups.count; first += most_groups) {
    Groups part = groups;
    part.begin += first;
    part.id += first;
    part.count = groups.count - first < most_groups ? groups.count - first : most_groups;
    const dim3 grid(static_cast<unsigned int>(strips(width)), static_cast<unsigned int>(part.count));
    const GroupTerm term{d, part, width};
    const GroupOut out{part, row_stride, table};
    column_sums_kernel<some, float><<<grid, 32 * some, 0, stream>>>(width, term, out);
  }
}

void cross_entropy(const float* logits, const std::int32_t* targets, Index rows, Index vocab, float* rows_of,
                   double* nats, cudaStream_t stream) {
  cross_entropy_kernel<<<static_cast<int>((rows + warps - 1) / warps), 32 * warps, 0, stream>>>(logits, targets, rows,
                                                                                                vocab, rows_of, nats);
}

void cross_entropy_back(const float* logits, const std::int32_t* targets, const float* rows_of, const float* d,
                        float share, Index rows, Index vocab, bool add, float* d_logits, cudaStream_t stream) {
  each(rows * vocab, stream, [=] __device__(Index i) {
    const Index row = i / vocab;
    const std::int32_t target = targets[row];
    const float p = target < 0 ? 0.0f : expf(logits[i] - rows_of[2 * row]) * rows_of[2 * row + 1];
    put(d_logits + i, *d * (share * (p - (i % vocab == target ? 1.0f : 0.0f))), add);
  });
}

void sums_of_squares(const Part* parts, Index count, double* sums, cudaStream_t stream) {
  if (count > 0) sums_of_squares_kernel<<<static_cast<int>(count), block, 0, stream>>>(parts, sums);
}

void adamw(const AdamWRow& row, const Part* parts, Index count, cudaStream_t stream) {
  if (count > 0) adamw_kernel<<<static_cast<int>(count), block, 0, stream>>>(row, parts);
}

}  // namespace headscope::cuda
