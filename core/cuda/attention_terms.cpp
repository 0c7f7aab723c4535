#include "core/cuda/attention_terms.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>
#include <utility>

namespace headscope::cuda {
namespace {

constexpr std::size_t most_bias_bytes = std::size_t{1} << 30;

/// Whether cells differ by more than being seen or not, their score and their distance.
bool by_cell(const AttentionKernel::Head& head) {
  return !head.parts.rule->plain() || head.parts.buckets || (head.parts.slope != 0 && head.parts.slope_unit > 0);
}

/// Whether ranges and the numbers of HeadTerms say all of the head's rule.
bool in_parts(const AttentionKernel::Head& head, Index first, Index count) {
  if (by_cell(head)) return false;
  for (Index i = 0; i < count; ++i)  // an edit may have put the sink into the rule
    if (head.parts.rule->sink(first + i) != HeadRule{}.sink) return false;
  return true;
}

/// Of every text's queries among all keys: each text sees itself only.
void add_ranges(const Attention::Terms::Texts& texts, const AttentionRule& rule, std::vector<int2>& ranges) {
  for (std::size_t t = 0; t < texts.count(); ++t) {
    const Index first = texts.key_begin[t], keys = texts.key_begin[t + 1] - first;
    for (Index i = 0; i < texts.begin[t + 1] - texts.begin[t]; ++i) {
      const KeyRange seen = rule.keys(i, keys);
      ranges.push_back(
          {static_cast<int>(first + seen.begin), static_cast<int>(first + std::max(seen.begin, seen.end))});
    }
  }
}

}  // namespace

Attention::Terms::Texts::Texts(const AttentionInput& in) : offset(in.offset) {
  const auto begins = [](std::span<const Index> lengths, Index all) {
    std::vector<Index> at{0};
    if (lengths.size() <= 1) return at.push_back(all), at;
    for (const Index length : lengths) at.push_back(at.back() + length);
    assert(at.back() == all);
    return at;
  };
  const bool other = in.lengths.size() > 1 && !in.key_lengths.empty();
  begin = begins(in.lengths, in.q.dim(0));
  key_begin = begins(other ? in.key_lengths : in.lengths, in.k.dim(0));
  assert(count() == 1 || in.offset == 0);
}

bool Attention::Terms::same(const AttentionInput& in, std::span<const Head> heads_) const {
  const auto equal = [](const HeadRule& a, const HeadRule& b) {
    return a.rule == b.rule && a.scale == b.scale && a.cap == b.cap && a.slope == b.slope &&
           a.slope_unit == b.slope_unit && a.sink == b.sink && a.buckets == b.buckets;
  };
  return texts == Texts(in) &&
         std::ranges::equal(of, heads_, [&](const Head& a, const Head& b) { return equal(a.parts, b.parts); });
}

bool Attention::takes(const AttentionInput& in, std::span<const Head> heads) const {
  // What distances add depends on queries and keys, of every pass anew.
  if (std::ranges::any_of(heads, [](const Head& head) { return head.parts.distances != nullptr; })) return false;
  std::set<const AttentionRule*> rules;  // that need a number for every cell
  for (const Head& head : heads)
    if (by_cell(head)) rules.insert(head.whole.rule.get());
  return rules.size() * static_cast<std::size_t>(in.q.dim(0) * in.k.dim(0)) * sizeof(float) <= most_bias_bytes;
}

bool Attention::takes_together(const AttentionInput& in, std::span<const Head> heads) const {
  Index longest = in.q.dim(0);
  if (in.lengths.size() > 1) longest = *std::ranges::max_element(in.lengths);
  const AttentionRule* known = nullptr;  // heads share theirs
  return std::ranges::all_of(heads, [&](const Head& head) {
    const bool good = head.parts.rule.get() == known ? !by_cell(head) : in_parts(head, in.offset, longest);
    known = head.parts.rule.get();
    return good;
  });
}

std::shared_ptr<const Attention::Terms> Attention::terms(const AttentionInput& in, std::span<const Head> heads) {
  for (const auto& known : terms_)
    if (known->same(in, heads)) return known;
  const auto made = std::make_shared<Terms>(in, heads);
  const Index n_query = in.q.dim(0), n_key = in.k.dim(0);
  std::vector<HeadTerms> all;
  std::vector<int2>& ranges = made->ranges_here;
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
    const bool parts = in_parts(head, in.offset, n_query);
    const AttentionRule& rule = parts ? *head.parts.rule : *head.whole.rule;
    HeadTerms& t = all.emplace_back();
    t.scale = head.whole.scale;
    t.cap = parts ? head.parts.cap : 0;
    t.slope = parts ? static_cast<float>(head.parts.slope) : 0;
    t.sink = parts ? head.parts.sink : HeadRule{}.sink;
    const auto keys = [&](Index query) {
      KeyRange seen = rule.keys(in.offset + query, n_key);
      seen.end = std::max(seen.begin, seen.end);
      return seen;
    };
    t.ranges = index_of(ranges_of, &rule, [&] {
      if (made->texts.count() > 1) return add_ranges(made->texts, rule, ranges);
      for (Index i = 0; i < n_query; ++i)
        ranges.push_back({static_cast<int>(keys(i).begin), static_cast<int>(keys(i).end)});
    });
    t.simple = parts && t.cap == 0 && t.slope == 0 && t.scale > 0;
    if (parts) continue;
    t.rows = index_of(rows_of, &rule, [&] {
      for (Index i = 0; i < n_query; ++i)
        rows.push_back({rule.factor(in.offset + i), rule.cap(in.offset + i), rule.sink(in.offset + i)});
    });
    if (rule.plain()) continue;
    t.bias = index_of(bias_of, &rule, [&] {
      for (Index i = 0; i < n_query; ++i) {
        const KeyRange seen = keys(i);
        const std::size_t first = biases.size();
        biases.resize(first + static_cast<std::size_t>(n_key));
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
  return made;
}

// Where ranges begin and end later from query to query, [x, y) holds exactly those that may see the key; elsewhere
// more.
Attention::Terms::SeenBy::SeenBy(const Terms& terms, Device& device) {
  const Index n_query = terms.texts.begin.back(), n_key = terms.texts.key_begin.back();
  std::vector<int2> all;
  std::vector<int> furthest(static_cast<std::size_t>(n_query)), nearest(furthest);
  for (std::size_t from = 0; from < terms.ranges_here.size(); from += static_cast<std::size_t>(n_query)) {
    const std::span<const int2> ranges = std::span(terms.ranges_here).subspan(from, static_cast<std::size_t>(n_query));
    // Up to query i nobody sees furthest[i] or beyond; from i on nobody sees what lies before nearest[i].
    int far = 0, near = static_cast<int>(n_key);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (ranges[i].x < ranges[i].y) far = std::max(far, ranges[i].y);
      furthest[i] = far;
    }
    for (std::size_t i = ranges.size(); i-- > 0;) {
      if (ranges[i].x < ranges[i].y) near = std::min(near, ranges[i].x);
      nearest[i] = near;
    }
    for (int key = 0; key < n_key; ++key)
      all.push_back({static_cast<int>(std::ranges::upper_bound(furthest, key) - furthest.begin()),
                     static_cast<int>(std::ranges::upper_bound(nearest, key) - nearest.begin())});
  }
  std::vector<int> first;
  for (std::size_t t = 0; t < terms.texts.count(); ++t)
    first.resize(static_cast<std::size_t>(terms.texts.begin[t + 1]), static_cast<int>(terms.texts.key_begin[t]));
  queries = device.upload(all.data(), all.size() * sizeof all[0]);
  first_key = device.upload(first.data(), first.size() * sizeof first[0]);
}

}  // namespace headscope::cuda
