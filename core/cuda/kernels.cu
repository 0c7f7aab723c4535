#include <cuda_bf16.h>
#include <math_constants.h>

#include "core/cuda/curve.cuh"
#include "core/cuda/kernels.h"
#include "core/cuda/launch.cuh"

namespace headscope::cuda {
namespace {

constexpr int warps = 4;  // of a block whose warps take a row each

/// Rows of `per_row` warps each; a block has `warps` of them.
template <int per_row>
__global__ void norm_kernel(const float* x, const float* gain, const float* bias, Index rows, Index width, Index sets,
                            float epsilon, float* out) {
  constexpr int count = 32 * per_row;
  __shared__ float room[per_row];
  const Index row = per_row > 1 ? blockIdx.x : blockIdx.x * static_cast<Index>(warps) + threadIdx.x / 32;
  const int me = threadIdx.x % count;
  if (row >= rows) return;
  const auto sum_of = [&](float share) {
    share = warp_sum(share);
    if (per_row == 1) return share;
    __syncthreads();
    if (me % 32 == 0) room[me / 32] = share;
    __syncthreads();
    float all = 0;
    for (int w = 0; w < per_row; ++w) all += room[w];
    return all;
  };
  const float* const in = x + row * width;
  const Index part = row % sets * width;
  float mean = 0;
  if (bias) {
    float sum = 0;
    for (Index i = me; i < width; i += count) sum += in[i];
    mean = sum_of(sum) / static_cast<float>(width);
  }
  float squares = 0;
  for (Index i = me; i < width; i += count) squares += (in[i] - mean) * (in[i] - mean);
  const float by = 1.0f / sqrtf(sum_of(squares) / static_cast<float>(width) + epsilon);
  for (Index i = me; i < width; i += count)
    out[row * width + i] = (in[i] - mean) * by * gain[part + i] + (bias ? bias[part + i] : 0.0f);
}

__global__ void solu_kernel(const float* x, Index rows, Index width, float* out) {
  const Index row = blockIdx.x * static_cast<Index>(warps) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* const in = x + row * width;
  float most = -CUDART_INF_F, sum = 0;
  for (Index i = lane; i < width; i += 32) most = fmaxf(most, in[i]);
  most = warp_max(most);
  for (Index i = lane; i < width; i += 32) sum += expf(in[i] - most);
  sum = warp_sum(sum);
  for (Index i = lane; i < width; i += 32) out[row * width + i] = in[i] * expf(in[i] - most) / sum;
}

__global__ void first_kernel(const Looked looked, unsigned long long* found) {
  const float* const x = looked.x[blockIdx.y];
  const Index n = looked.n[blockIdx.y];
  for (Index i = blockIdx.x * static_cast<Index>(blockDim.x) + threadIdx.x; i < n;
       i += static_cast<Index>(gridDim.x) * blockDim.x)
    if (!isfinite(x[i])) {
      atomicMin(found + blockIdx.y, static_cast<unsigned long long>(i) << 32 | __float_as_uint(x[i]));
      return;  // what this thread would find later stands later
    }
}

}  // namespace

void add(const float* a, const float* b, Index n, float* out, cudaStream_t stream) {
  each(n, stream, [=] __device__(Index i) { out[i] = a[i] + b[i]; });
}

void multiply(const float* a, const float* b, Index n, float* out, cudaStream_t stream) {
  each(n, stream, [=] __device__(Index i) { out[i] = a[i] * b[i]; });
}

void scale(const float* x, float factor, Index n, float* out, cudaStream_t stream) {
  each(n, stream, [=] __device__(Index i) { out[i] = factor * x[i]; });
}

void soft_cap(const float* x, float limit, Index n, float* out, cudaStream_t stream) {
  each(n, stream, [=] __device__(Index i) { out[i] = limit * tanhf(x[i] / limit); });
}

void clip(const float* x, float limit, Index n, float* out, cudaStream_t stream) {
  each(n, stream, [=] __device__(Index i) {
    const float v = x[i];
    out[i] = v < -limit ? -limit : v > limit ? limit : v;  // NaN stays
  });
}

void activate(Curve f, const float* x, Index n, float* out, cudaStream_t stream) {
  each(n, stream, [=] __device__(Index i) { out[i] = bent(f, x[i]); });
}

void xielu(XieluNumbers f, const float* x, Index n, float* out, cudaStream_t stream) {
  each(n, stream, [=] __device__(Index i) {
    const float v = x[i];
    out[i] = f.beta * v + (v > 0 ? f.positive * v * v : f.negative * (expm1f(v < f.epsilon ? v : f.epsilon) - v));
  });
}

void norm(const float* x, const float* gain, const float* bias, Index rows, Index width, Index sets, float epsilon,
          float* out, cudaStream_t stream) {
  constexpr Index few = 64, wide = 256;  // then one warp for a row is not enough
  constexpr int together = 8;
  if (rows <= few && width >= wide)
    norm_kernel<together>
        <<<static_cast<int>(rows), 32 * together, 0, stream>>>(x, gain, bias, rows, width, sets, epsilon, out);
  else
    norm_kernel<1><<<static_cast<int>((rows + warps - 1) / warps), 32 * warps, 0, stream>>>(x, gain, bias, rows, width,
                                                                                            sets, epsilon, out);
}

void solu(const float* x, Index rows, Index width, float* out, cudaStream_t stream) {
  solu_kernel<<<static_cast<int>((rows + warps - 1) / warps), 32 * warps, 0, stream>>>(x, rows, width, out);
}

void add_to_heads(Heads x, const float* shared, Index shared_stride, Index r, float* out, cudaStream_t stream) {
  each(x.rows * x.heads * x.width, stream, [=] __device__(Index i) {
    const Index at = i % x.width, head = i / x.width % x.heads, row = i / x.width / x.heads;
    const float v = x.x[row * x.row_stride + head * x.head_stride + at];
    out[i] = at < r ? v + shared[row * shared_stride + at] : v;
  });
}

void rotate(Heads x, const float* cosine, const float* sine, Index pairs, bool adjacent, float* out,
            cudaStream_t stream) {
  turn(x, cosine, sine, pairs, adjacent, 1, out, x.heads * x.width, x.width, false, stream);
}

void turn(Heads x, const float* cosine, const float* sine, Index pairs, bool adjacent, float sign, float* out,
          Index out_row, Index out_head, bool add, cudaStream_t stream) {
  const Index step = adjacent ? 2 : 1, other = adjacent ? 1 : pairs, rest = x.width - 2 * pairs,
              items = pairs + rest;  // a pair, or a number that stays
  each(x.rows * x.heads * items, stream, [=] __device__(Index i) {
    const Index item = i % items, head = i / items % x.heads, row = i / items / x.heads;
    const float* const from = x.x + row * x.row_stride + head * x.head_stride;
    float* const to = out + row * out_row + head * out_head;
    const auto put = [&](Index at, float value) { to[at] = add ? to[at] + value : value; };
    if (item >= pairs) return put(item + pairs, from[item + pairs]);
    const float a = from[step * item], b = from[step * item + other], c = cosine[row * pairs + item],
                s = sign * sine[row * pairs + item];
    put(step * item, a * c - b * s);
    put(step * item + other, b * c + a * s);
  });
}

void gather(const float* table, Index row_stride, Index width, const std::int32_t* ids, Index count, float* out,
            cudaStream_t stream) {
  each(count * width, stream,
       [=] __device__(Index i) { out[i] = table[static_cast<Index>(ids[i / width]) * row_stride + i % width]; });
}

void copy(const float* x, const std::array<Index, 4>& extents, const std::array<Index, 4>& strides, Index n, float* out,
          cudaStream_t stream) {
  const Index e1 = extents[1], e2 = extents[2], e3 = extents[3], s0 = strides[0], s1 = strides[1], s2 = strides[2],
              s3 = strides[3];
  each(n, stream, [=] __device__(Index i) {
    out[i] = x[i / (e1 * e2 * e3) * s0 + i / (e2 * e3) % e1 * s1 + i / e3 % e2 * s2 + i % e3 * s3];
  });
}

void to_bfloat(const float* x, Index rows, Index width, Index row_stride, void* out, cudaStream_t stream) {
  auto* const to = static_cast<__nv_bfloat16*>(out);
  each(rows * width, stream,
       [=] __device__(Index i) { to[i] = __float2bfloat16_rn(x[i / width * row_stride + i % width]); });
}

void first_not_finite(const Looked& looked, int count, unsigned long long* found, cudaStream_t stream) {
  Index most = 1;
  for (int i = 0; i < count; ++i) most = looked.n[i] > most ? looked.n[i] : most;
  const dim3 grid(static_cast<unsigned int>(blocks_for(most)), static_cast<unsigned int>(count));
  first_kernel<<<grid, block, 0, stream>>>(looked, found);
}

}  // namespace headscope::cuda
