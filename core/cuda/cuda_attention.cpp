#include "core/cuda/cuda_attention.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/nth.h"
#include "core/cuda/attention_terms.h"

namespace headscope::cuda {

namespace {
constexpr Index most_scratch_bytes = Index{256} << 20;
constexpr Index few_queries = 16;
}  // namespace

Tensor Attention::room(Shape shape) {
  return Tensor::of(std::make_shared<Storage>(device_, shape.size()), shape);
}

const int* Attention::labels(const AttentionInput& in) {
  if (!in.links) return nullptr;
  const Index count = in.offset + in.q.dim(0);
  std::shared_ptr<float>& known = labels_[{in.links, count}];
  if (!known) {
    // Rows of one token have one list, which begins where no other's does (core/trace/token_links.h).
    const std::vector<std::int32_t>& begin = in.links->duplicate.begin;
    assert(static_cast<Index>(begin.size()) >= count);
    known = device_->upload(begin.data(), static_cast<std::size_t>(count) * sizeof begin[0]);
  }
  return reinterpret_cast<const int*>(known.get());
}

AttentionTask Attention::task(const Operand& q, const Operand& k, const Operand& v, const Tensor& z,
                              const Terms& terms) const {
  AttentionTask task{};
  task.q = q.data;
  task.k = k.data;
  task.v = v.data;
  task.z = CardTensors::place(z);
  const auto strides = [](const Tensor& t, std::int64_t& row, std::int64_t& head) {
    row = t.stride(0);
    head = t.stride(1);
  };
  strides(q.keeps, task.q_row, task.q_head);
  strides(k.keeps, task.k_row, task.k_head);
  strides(v.keeps, task.v_row, task.v_head);
  strides(z, task.z_row, task.z_head);
  task.n_query = static_cast<int>(q.keeps.dim(0));
  task.n_key = static_cast<int>(k.keeps.dim(0));
  task.heads = static_cast<int>(q.keeps.dim(1));
  task.kv_heads = static_cast<int>(k.keeps.dim(1));
  task.d = static_cast<int>(q.keeps.dim(2));
  task.d_value = static_cast<int>(v.keeps.dim(2));
  task.offset = static_cast<int>(terms.texts.offset);
  task.exact = exact_;
  task.simple = terms.simple;
  const auto by_four = [](const float* data, std::int64_t row, std::int64_t head, int width) {
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && row % 4 == 0 && head % 4 == 0 && width % 4 == 0;
  };
  task.by_four =
      by_four(task.k, task.k_row, task.k_head, task.d) && by_four(task.v, task.v_row, task.v_head, task.d_value);
  task.head = reinterpret_cast<const HeadTerms*>(terms.heads.get());
  task.ranges = reinterpret_cast<const int2*>(terms.ranges.get());
  task.rows = reinterpret_cast<const RowTerms*>(terms.rows.get());
  task.biases = terms.biases.get();
  return task;
}

std::vector<AttentionMap> Attention::attend(const AttentionInput& in, std::span<const Head> heads, Tensor z) {
  device_->choose();
  const Index n_query = in.q.dim(0), n_key = in.k.dim(0), count = in.q.dim(1), kv_heads = in.k.dim(1);
  const Operand q = card_.heads_on_card(in.q);
  const bool by_rows = n_query <= few_queries;
  const std::optional<HeldRows::Fresh> fresh = by_rows ? held_.take(in.k, in.v) : std::nullopt;
  const Operand k = card_.heads_on_card(in.k), v = card_.heads_on_card(in.v);
  const Terms& rule = *terms(in, heads);
  AttentionTask task = this->task(q, k, v, z, rule);
  task.early = device_->starts_early();
  if (fresh) {
    task.fresh_k = fresh->k.data;
    task.fresh_v = fresh->v.data;
    task.to_k = CardTensors::place(fresh->to_k);
    task.to_v = CardTensors::place(fresh->to_v);
    task.fresh_rows = fresh->rows;
  }
  const bool mapped = in.storage != MapStorage::none;
  Tensor weights;  // (head, query, key)
  AttentionStatistics::Of* stats = nullptr;
  if (mapped) {
    task.labels = labels(in);
    stats = &statistics_.add(count, n_query, n_key, task.labels != nullptr);
    task.stats = stats->room;
    weights = stats->weights;
    if (!weights.defined() && (in.storage == MapStorage::dense || stats->bin == 1)) {
      weights = room({count, n_query, n_key});
      check(cudaMemsetAsync(CardTensors::place(weights), 0, weights.bytes(), device_->stream()), "clearing weights");
    }
    if (weights.defined()) task.weights = CardTensors::place(weights);
  }

  std::shared_ptr<float> scratch;
  const Room card{device_->properties().sharedMemPerBlockOptin, device_->properties().multiProcessorCount};
  if (!by_rows && tiles_take(task.d, task.d_value, card)) {
    scratch = device_->take(tiles_bytes(task));
    task.scratch = scratch.get();
    attention_by_tiles(task, card, device_->stream());
  } else {
    Index step = n_query;  // scores that do not stay on chip take no more room than this leaves
    if (n_key > row_room(task.d)) {
      step = std::clamp<Index>(most_scratch_bytes / (Index{sizeof(float)} * count * n_key), 1, n_query);
      scratch = device_->take(sizeof(float) * static_cast<std::size_t>(count * step * n_key));
      task.scratch = scratch.get();
    }
    for (Index row = 0; row < n_query; row += step) {
      task.first_query = static_cast<int>(row);
      attention_by_rows(task, static_cast<int>(std::min(step, n_query - row)), device_->stream());
    }
  }
  check(cudaGetLastError(), "attention");
  if (fresh)
    for (const Tensor* const put : {&fresh->to_k, &fresh->to_v}) CardTensors::storage(*put)->written_on_card();
  static_cast<Storage*>(z.remote())->written_on_card();

  std::vector<AttentionMap> maps;
  if (!mapped) return maps;
  statistics_.queued();
  if (weights.defined() && !stats->weights.defined()) weights.remote()->send();
  for (Index head = 0; head < count; ++head) {
    const Index kv = head / (count / kv_heads);
    auto& own = stats->to.emplace_back(std::make_shared<HeadStats>());
    own->log_sum_exp.resize(static_cast<std::size_t>(n_query));
    own->overview.bin = static_cast<int>(stats->bin);
    if (stats->bin == 1) own->overview.values = weights.select(0, head);
    const AttentionMap::Place place{in.layer,  static_cast<int>(head), static_cast<int>(kv),
                                    in.offset, MapKind::probability,   in.between_texts};
    const HeadRule& whole = nth(heads, head).whole;
    if (in.storage == MapStorage::factored)
      maps.push_back(
          AttentionMap::factored(place, in.q.select(1, head), in.k.select(1, kv), whole.scale, whole.rule, own));
    else
      maps.push_back(AttentionMap::dense(place, weights.select(0, head), whole.rule, own));
  }
  return maps;
}

void Attention::forget() {
  statistics_.forget();
  terms_.clear();
  labels_.clear();
}

void Attention::finish(ThreadPool& pool) {
  terms_.clear();
  labels_.clear();
  statistics_.finish(pool);
}

}  // namespace headscope::cuda
