#include "core/cuda/attention_row.cuh"
#include "core/cuda/tensor_cores.cuh"

namespace headscope::cuda {
namespace {

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

/// What a tile of weights [query][pitch] adds to the sums of columns and distances, and to the pooled picture. All
/// threads of the block come here; `me`: which of those of this tile.
__device__ void sum_up(const AttentionTask& t, int head, int first, int key0, int me, bool pooled, const float* weights,
                       float* bins) {
  const int bin = t.stats.bin;
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
  if (!pooled) return;
  __syncthreads();
  const int column0 = key0 / bin;
  for (int i = me; i < most_bins * most_bins; i += threads) {
    const int row = first / bin + i / most_bins, column = column0 + i % most_bins;
    if (bins[i] > 0.0f && row < t.stats.overview_rows && column < t.stats.overview_columns)
      raise(t.stats.overview + (static_cast<Index>(head) * t.stats.overview_rows + row) * t.stats.overview_columns +
                column,
            bins[i]);
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
  const bool pooled = stats && t.stats.overview && t.stats.bin > 1;
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
    sum_up(t, head, first, key0, me, pooled, weights, bins);
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

}  // namespace headscope::cuda
