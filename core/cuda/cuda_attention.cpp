#include "core/cuda/cuda_attention.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "core/base/nth.h"

namespace headscope::cuda {

namespace {
constexpr std::size_t most_bias_bytes = std::size_t{1} << 30;
constexpr Index most_scratch_bytes = Index{256} << 20;
constexpr Index few_queries = 16;

/// Whether cells differ by more than being seen or not, their score and their distance.
bool by_cell(const AttentionKernel::Head& head) {
  return !head.parts.rule->plain() || head.parts.buckets || (head.parts.slope != 0 && head.parts.slope_unit > 0);
}
}  // namespace

/// The rules of a layer's heads as the kernels read them.
struct Attention::Terms {
  std::vector<Head> of;  // keeps the rules
  Index n_query, n_key, offset;
  bool simple;  // all of them
  std::shared_ptr<float> heads, ranges, rows, biases;

  bool same(const AttentionInput& in, std::span<const Head> heads_) const {
    const auto equal = [](const HeadRule& a, const HeadRule& b) {
      return a.rule == b.rule && a.scale == b.scale && a.cap == b.cap && a.slope == b.slope &&
             a.slope_unit == b.slope_unit && a.sink == b.sink && a.buckets == b.buckets;
    };
    return n_query == in.q.dim(0) && n_key == in.k.dim(0) && offset == in.offset &&
           std::ranges::equal(of, heads_, [&](const Head& a, const Head& b) { return equal(a.parts, b.parts); });
  }
};

/// One text's statistics in one layer, on their way home.
struct Attention::Statistics {
  Index heads, n_query, n_key;
  bool links;
  std::vector<std::shared_ptr<HeadStats>> to;  // by head
  std::shared_ptr<float> on_card, here;
  std::size_t bytes = 0;
  StatsRoom room;  // over there
  cudaEvent_t sent = nullptr;
  ~Statistics() {
    if (!sent) return;
    cudaEventSynchronize(sent);
    cudaEventDestroy(sent);
  }

  template <class T>
  const T* home(const T* over_there) const {
    return reinterpret_cast<const T*>(
        reinterpret_cast<const char*>(here.get()) +
        (reinterpret_cast<const char*>(over_there) - reinterpret_cast<const char*>(on_card.get())));
  }

  void fill(Index head) const {
    HeadStats& s = *nth(to, head);
    const auto rows = static_cast<std::size_t>(n_query);
    const auto take = [&](auto& into, const auto* from, std::size_t count) {
      const auto* const first = home(from) + static_cast<std::size_t>(head) * count;
      into.assign(first, first + count);
    };
    take(s.log_sum_exp, room.log_sum_exp, rows);
    take(s.entropy, room.entropy, rows);
    take(s.entropy_without_first, room.entropy_without_first, rows);
    take(s.max_weight, room.max_weight, rows);
    take(s.max_key, room.max_key, rows);
    take(s.first, room.first, rows);
    if (links) {
      take(s.duplicate, room.duplicate, rows);
      take(s.induction, room.induction, rows);
    }
    const auto masses = [&](std::vector<double>& into, const unsigned long long* from, Index count) {
      const unsigned long long* const first = home(from) + head * count;
      into.resize(static_cast<std::size_t>(count));
      for (Index i = 0; i < count; ++i) nth(into, i) = static_cast<double>(first[i]) * mass_unit;
    };
    masses(s.column_mass, room.column, n_key);
    masses(s.distance_mass, room.distance, n_query + n_key - 1);
    if (room.bin > 1) {
      const Index cells = Index{room.overview_rows} * room.overview_columns;
      Tensor values = Tensor::uninitialized({room.overview_rows, room.overview_columns});
      std::memcpy(values.mutable_data(), home(room.overview) + head * cells, values.bytes());
      s.overview.values = values;
    }
  }
};

bool Attention::takes(const AttentionInput& in, std::span<const Head> heads) const {
  std::set<const AttentionRule*> rules;  // that need a number for every cell
  for (const Head& head : heads)
    if (by_cell(head)) rules.insert(head.whole.rule.get());
  return rules.size() * static_cast<std::size_t>(in.q.dim(0) * in.k.dim(0)) * sizeof(float) <= most_bias_bytes;
}

Tensor Attention::room(Shape shape) {
  return Tensor::of(std::make_shared<Storage>(device_, shape.size()), shape);
}

const Attention::Terms& Attention::terms(const AttentionInput& in, std::span<const Head> heads) {
  for (const auto& known : terms_)
    if (known->same(in, heads)) return *known;
  auto made = std::make_shared<Terms>();
  made->of.assign(heads.begin(), heads.end());
  made->n_query = in.q.dim(0);
  made->n_key = in.k.dim(0);
  made->offset = in.offset;
  std::vector<HeadTerms> all;
  std::vector<int2> ranges;
  std::vector<RowTerms> rows;
  std::vector<float> biases;
  std::vector<std::pair<const AttentionRule*, int>> ranges_of, rows_of, bias_of;
  const auto index_of = [](auto& list, const AttentionRule* rule, auto add) {
    for (const auto& [known, index] : list)
      if (known == rule) return index;
    const int index = static_cast<int>(list.size());
    list.emplace_back(rule, index);
    add();
    return index;
  };
  for (const Head& head : heads) {
    bool parts = !by_cell(head);
    for (Index i = 0; parts && i < made->n_query; ++i)  // an edit may have put the sink into the rule
      parts = head.parts.rule->sink(in.offset + i) == HeadRule{}.sink;
    const AttentionRule& rule = parts ? *head.parts.rule : *head.whole.rule;
    HeadTerms& t = all.emplace_back();
    t.scale = head.whole.scale;
    t.cap = parts ? head.parts.cap : 0;
    t.slope = parts ? static_cast<float>(head.parts.slope) : 0;
    t.sink = parts ? head.parts.sink : HeadRule{}.sink;
    const auto keys = [&](Index query) {
      KeyRange seen = rule.keys(in.offset + query, made->n_key);
      seen.end = std::max(seen.begin, seen.end);
      return seen;
    };
    t.ranges = index_of(ranges_of, &rule, [&] {
      for (Index i = 0; i < made->n_query; ++i)
        ranges.push_back({static_cast<int>(keys(i).begin), static_cast<int>(keys(i).end)});
    });
    t.simple = parts && t.cap == 0 && t.slope == 0 && t.scale > 0;
    if (parts) continue;
    t.rows = index_of(rows_of, &rule, [&] {
      for (Index i = 0; i < made->n_query; ++i)
        rows.push_back({rule.factor(in.offset + i), rule.cap(in.offset + i), rule.sink(in.offset + i)});
    });
    if (rule.plain()) continue;
    t.bias = index_of(bias_of, &rule, [&] {
      for (Index i = 0; i < made->n_query; ++i) {
        const KeyRange seen = keys(i);
        const std::size_t first = biases.size();
        biases.resize(first + static_cast<std::size_t>(made->n_key));
        // What it makes of 0 is what it adds; what it multiplies and bends leaves 0 as it is.
        if (seen.size() > 0)
          rule.apply(in.offset + i, seen.begin,
                     std::span(biases).subspan(first + static_cast<std::size_t>(seen.begin),
                                               static_cast<std::size_t>(seen.size())));
      }
    });
  }
  const auto sent = [&](const auto& values) -> std::shared_ptr<float> {
    return values.empty() ? nullptr : device_->upload(values.data(), values.size() * sizeof values[0]);
  };
  made->simple = std::ranges::all_of(all, &HeadTerms::simple);
  made->heads = sent(all);
  made->ranges = sent(ranges);
  made->rows = sent(rows);
  made->biases = sent(biases);
  terms_.push_back(made);
  return *made;
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

std::vector<AttentionMap> Attention::attend(const AttentionInput& in, std::span<const Head> heads, Tensor z) {
  device_->choose();
  const Index n_query = in.q.dim(0), n_key = in.k.dim(0), count = in.q.dim(1), kv_heads = in.k.dim(1);
  const Operand q = on_card_(in.q), k = on_card_(in.k), v = on_card_(in.v);
  const Terms& rule = terms(in, heads);
  AttentionTask task{};
  task.q = q.data;
  task.k = k.data;
  task.v = v.data;
  task.z = static_cast<Storage*>(z.remote())->on_card() + z.at_device();
  const auto strides = [](const Tensor& t, std::int64_t& row, std::int64_t& head) {
    row = t.stride(0);
    head = t.stride(1);
  };
  strides(q.keeps, task.q_row, task.q_head);
  strides(k.keeps, task.k_row, task.k_head);
  strides(v.keeps, task.v_row, task.v_head);
  strides(z, task.z_row, task.z_head);
  task.n_query = static_cast<int>(n_query);
  task.n_key = static_cast<int>(n_key);
  task.heads = static_cast<int>(count);
  task.kv_heads = static_cast<int>(kv_heads);
  task.d = static_cast<int>(in.q.dim(2));
  task.d_value = static_cast<int>(in.v.dim(2));
  task.offset = static_cast<int>(in.offset);
  task.exact = exact_;
  task.simple = rule.simple;
  const auto by_four = [](const float* data, std::int64_t row, std::int64_t head, int width) {
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && row % 4 == 0 && head % 4 == 0 && width % 4 == 0;
  };
  task.by_four =
      by_four(task.k, task.k_row, task.k_head, task.d) && by_four(task.v, task.v_row, task.v_head, task.d_value);
  task.head = reinterpret_cast<const HeadTerms*>(rule.heads.get());
  task.ranges = reinterpret_cast<const int2*>(rule.ranges.get());
  task.rows = reinterpret_cast<const RowTerms*>(rule.rows.get());
  task.biases = rule.biases.get();

  const bool mapped = in.storage != MapStorage::none;
  const Index bin = (std::max(n_query, n_key) + stored_overview_cells - 1) / stored_overview_cells;
  Tensor weights;  // (head, query, key)
  std::shared_ptr<Statistics> stats;
  if (mapped) {
    task.labels = labels(in);
    if (in.storage == MapStorage::dense || bin == 1) {
      weights = room({count, n_query, n_key});
      task.weights = static_cast<Storage*>(weights.remote())->on_card();
      check(cudaMemsetAsync(task.weights, 0, weights.bytes(), device_->stream()), "clearing weights");
    }
    stats = std::make_shared<Statistics>();
    stats->heads = count;
    stats->n_query = n_query;
    stats->n_key = n_key;
    stats->links = task.labels != nullptr;
    const auto u = [](Index n) { return static_cast<std::size_t>(n); };
    const std::size_t rows = u(count * n_query), distances = u(count * (n_query + n_key - 1)), keys = u(count * n_key);
    const auto pooled = [&](Index n) { return (n + bin - 1) / bin; };
    const std::size_t cells = bin > 1 ? u(count * pooled(n_query) * pooled(n_key)) : 0;
    stats->bytes = 8 * (rows + keys + distances) + 4 * (7 * rows + cells);
    stats->on_card = device_->take(stats->bytes);
    check(cudaMemsetAsync(stats->on_card.get(), 0, stats->bytes, device_->stream()), "clearing statistics");
    StatsRoom& s = stats->room;
    s.log_sum_exp = reinterpret_cast<double*>(stats->on_card.get());
    s.column = reinterpret_cast<unsigned long long*>(s.log_sum_exp + rows);
    s.distance = s.column + keys;
    s.entropy = reinterpret_cast<float*>(s.distance + distances);
    s.entropy_without_first = s.entropy + rows;
    s.max_weight = s.entropy_without_first + rows;
    s.first = s.max_weight + rows;
    s.max_key = reinterpret_cast<int*>(s.first + rows);
    float* const linked = reinterpret_cast<float*>(s.max_key + rows);
    if (task.labels) {
      s.duplicate = linked;
      s.induction = linked + rows;
    }
    s.bin = static_cast<int>(bin);
    if (bin > 1) {
      s.overview = linked + 2 * rows;
      s.overview_rows = static_cast<int>(pooled(n_query));
      s.overview_columns = static_cast<int>(pooled(n_key));
    }
    task.stats = s;
  }

  std::shared_ptr<float> scratch;
  const Room card{device_->properties().sharedMemPerBlockOptin, device_->properties().multiProcessorCount};
  if (n_query > few_queries && tiles_take(task.d, task.d_value, card)) {
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
  static_cast<Storage*>(z.remote())->written_on_card();

  std::vector<AttentionMap> maps;
  if (!mapped) return maps;
  if (weights.defined()) weights.remote()->send();
  stats->here = device_->pinned(stats->bytes);
  // While the next layer runs.
  check(cudaEventCreateWithFlags(&stats->sent, cudaEventDisableTiming), "making an event");
  check(cudaEventRecord(stats->sent, device_->stream()), "marking a place in the stream");
  check(cudaStreamWaitEvent(device_->homeward(), stats->sent, 0), "waiting for statistics");
  check(cudaMemcpyAsync(stats->here.get(), stats->on_card.get(), stats->bytes, cudaMemcpyDeviceToHost,
                        device_->homeward()),
        "copying statistics from the card");
  check(cudaEventRecord(stats->sent, device_->homeward()), "marking a place in the stream");
  for (Index head = 0; head < count; ++head) {
    const Index kv = head / (count / kv_heads);
    auto& own = stats->to.emplace_back(std::make_shared<HeadStats>());
    own->log_sum_exp.resize(static_cast<std::size_t>(n_query));
    own->overview.bin = static_cast<int>(bin);
    if (bin == 1) own->overview.values = weights.select(0, head);
    const AttentionMap::Place place{in.layer,  static_cast<int>(head), static_cast<int>(kv),
                                    in.offset, MapKind::probability,   in.between_texts};
    const HeadRule& whole = nth(heads, head).whole;
    if (in.storage == MapStorage::factored)
      maps.push_back(
          AttentionMap::factored(place, in.q.select(1, head), in.k.select(1, kv), whole.scale, whole.rule, own));
    else
      maps.push_back(AttentionMap::dense(place, weights.select(0, head), whole.rule, own));
  }
  pending_.push_back(std::move(stats));
  return maps;
}

void Attention::forget() {
  pending_.clear();
  terms_.clear();
  labels_.clear();
}

void Attention::finish(ThreadPool& pool) {
  const std::vector<std::shared_ptr<Statistics>> pending = std::exchange(pending_, {});
  forget();
  for (const auto& each : pending) {
    check(cudaEventSynchronize(each->sent), "copying statistics from the card");
    pool.parallel(static_cast<int>(each->heads), [&](int head, int) { each->fill(head); });
  }
}

}  // namespace headscope::cuda
