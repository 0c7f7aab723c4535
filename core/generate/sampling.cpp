#include "core/generate/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/trace/row_kernels.h"

namespace headscope {

namespace {
/// The ids, largest logit first, ties by id: by the bytes of numbers that order as the logits do, last byte first
/// (a comparison sort of 50,000 takes longer than half of a small GPT-2's pass).
std::vector<std::int32_t> by_logit(const Tensor& logits) {
  struct Entry {
    std::uint32_t key;
    std::int32_t id;
  };
  const auto vocab = static_cast<std::size_t>(logits.dim(0));
  std::vector<Entry> entries(vocab), sorted(vocab);
  for (std::size_t i = 0; i < vocab; ++i) {
    const auto id = static_cast<std::int32_t>(i);
    const auto bits = std::bit_cast<std::uint32_t>(logits.at(id) + 0.0f);  // −0 is 0
    // Larger ones first: of positive numbers all bits but the sign turned, negative ones behind them as they are.
    entries[i] = {bits >> 31 ? bits : bits ^ 0x7FFFFFFFu, id};
  }
  for (int shift = 0; shift < 32; shift += 8) {
    const auto digit = [shift](const Entry& entry) { return entry.key >> shift & 0xFFu; };
    std::array<std::size_t, 257> begin{};
    for (const Entry& entry : entries) ++begin[digit(entry) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    for (const Entry& entry : entries) sorted[begin[digit(entry)]++] = entry;
    std::swap(entries, sorted);
  }
  std::vector<std::int32_t> ids;
  ids.reserve(vocab);
  for (const Entry& entry : entries) ids.push_back(entry.id);
  return ids;
}

/// softmax(logits / temperature) in the order of `ids`.
std::vector<double> softmax(const Tensor& logits, const std::vector<std::int32_t>& ids, double temperature) {
  std::vector<double> p(ids.size());
  const auto most = static_cast<double>(logits.at(ids.front()));
  double sum = 0;
  for (std::size_t i = 0; i < ids.size(); ++i)
    sum += p[i] = std::exp((static_cast<double>(logits.at(ids[i])) - most) / temperature);
  for (double& each : p) each /= sum;
  return p;
}
}  // namespace

void check(const SamplingSettings& settings, const std::string& where) {
  if (!(settings.temperature >= 0 && settings.temperature <= 1000))
    throw Error(where + ": temperature", "a number from 0 to 1000", fmt::format("{}", settings.temperature));
  if (settings.top_k < 0) throw Error(where + ": top-k", "0 (all) or more", std::to_string(settings.top_k));
  if (!(settings.top_p > 0 && settings.top_p <= 1))
    throw Error(where + ": top-p", "a share above 0 and at most 1", fmt::format("{}", settings.top_p));
}

TokenDistribution token_distribution(const Tensor& logits, const SamplingSettings& settings) {
  TokenDistribution out;
  const auto vocab = static_cast<std::size_t>(logits.dim(0));
  assert(vocab > 0);
  out.ids = by_logit(logits);
  out.plain = softmax(logits, out.ids, 1);
  if (settings.greedy()) {
    out.tempered.assign(vocab, 0);
    out.tempered.front() = 1;
  } else {
    out.tempered = settings.temperature == 1 ? out.plain : softmax(logits, out.ids, settings.temperature);
  }
  out.after_top_k = settings.top_k > 0 ? std::min(vocab, static_cast<std::size_t>(settings.top_k)) : vocab;
  out.count = settings.greedy() ? 1 : out.after_top_k;
  const auto sum_of_first = [&](std::size_t count) {
    return std::accumulate(out.tempered.begin(), out.tempered.begin() + static_cast<std::ptrdiff_t>(count), 0.0);
  };
  if (settings.top_p < 1) {
    const double wanted = settings.top_p * sum_of_first(out.count);
    double sum = 0;
    std::size_t count = 0;
    while (count < out.count && sum < wanted) sum += out.tempered[count++];
    out.count = std::max<std::size_t>(count, 1);
  }
  const double sum = sum_of_first(out.count);
  out.kept.assign(vocab, 0);
  for (std::size_t i = 0; i < out.count; ++i) out.kept[i] = out.tempered[i] / sum;
  return out;
}

std::int32_t most_probable(const Tensor& logits) {
  const Tensor row = logits.packed();
  const Index n = row.dim(0);
  const Index best = row_kernels::find_first(row.data(), n, row_kernels::maximum(row.data(), n));
  return static_cast<std::int32_t>(std::max<Index>(best, 0));
}

double entropy_of(std::span<const double> probabilities) {
  double sum = 0;
  for (const double p : probabilities)
    if (p > 0) sum -= p * std::log(p);
  return sum;
}

std::size_t place_of(const TokenDistribution& distribution, double u) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < distribution.count; ++i)
    if ((sum += distribution.kept[i]) > u) return i;
  return distribution.count - 1;
}

double draw_of(std::uint64_t seed, std::uint64_t index) {
  return Random(seed + index * 0x9E3779B97F4A7C15ull).uniform();  // the state of SplitMix64 counts in this step
}

std::int32_t sample_token(const Tensor& logits, const SamplingSettings& settings, Random& random) {
  if (settings.greedy()) return most_probable(logits);
  const TokenDistribution distribution = token_distribution(logits, settings);
  return distribution.ids[place_of(distribution, random.uniform())];
}

}  // namespace headscope
