#include "core/metrics/token_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/trace/words.h"

namespace headscope {

namespace {
/// Rows of tokens, columns of keys.
struct Grid {
  Index rows = 0, columns = 0;
  std::vector<double> values;
  Grid(Index r, Index c, double value = 0) : rows(r), columns(c), values(static_cast<std::size_t>(r * c), value) {}
  double& at(Index r, Index c) { return nth(values, r * columns + c); }
  double at(Index r, Index c) const { return nth(values, r * columns + c); }
};

void normalize_over_tokens(Grid& x) {
  for (Index c = 0; c < x.columns; ++c) {
    double mean = 0, square = 0;
    for (Index r = 0; r < x.rows; ++r) mean += x.at(r, c) / static_cast<double>(x.rows);
    for (Index r = 0; r < x.rows; ++r) square += (x.at(r, c) - mean) * (x.at(r, c) - mean);
    const double deviation = std::sqrt(square / static_cast<double>(x.rows));
    for (Index r = 0; r < x.rows; ++r) x.at(r, c) = deviation > 0 ? (x.at(r, c) - mean) / deviation : 0;
  }
}

/// Both ends mirrored.
Grid smoothed(const Grid& x, int width) {
  const Index half = width / 2;
  if (x.columns <= half) return x;
  Grid out(x.rows, x.columns);
  std::vector<double> near(static_cast<std::size_t>(width));
  for (Index r = 0; r < x.rows; ++r)
    for (Index c = 0; c < x.columns; ++c) {
      for (Index i = 0; i < width; ++i) {
        Index at = c + i - half;
        if (at < 0) at = -at;
        if (at >= x.columns) at = 2 * (x.columns - 1) - at;
        nth(near, i) = x.at(r, at);
      }
      std::ranges::nth_element(near, near.begin() + half);
      out.at(r, c) = nth(near, half);
    }
  return out;
}

/// The key at which the path of most comes to each row.
std::vector<Index> reached(const Grid& x) {
  enum Step : char { both, token, key };
  Grid cost(x.rows + 1, x.columns + 1, std::numeric_limits<double>::infinity());
  std::vector<Step> steps(cost.values.size(), key);
  cost.at(0, 0) = 0;
  for (Index c = 1; c <= x.columns; ++c)
    for (Index r = 1; r <= x.rows; ++r) {
      const double by_both = cost.at(r - 1, c - 1), by_token = cost.at(r - 1, c), by_key = cost.at(r, c - 1);
      const Step step = by_both < by_token && by_both < by_key    ? both
                        : by_token < by_both && by_token < by_key ? token
                                                                  : key;
      cost.at(r, c) = (step == both ? by_both : step == token ? by_token : by_key) - x.at(r - 1, c - 1);
      nth(steps, r * cost.columns + c) = step;
    }
  std::vector<Index> first(static_cast<std::size_t>(x.rows), 0);
  for (Index r = x.rows, c = x.columns; r > 0 || c > 0;) {
    if (r > 0) nth(first, r - 1) = std::max<Index>(c - 1, 0);
    const Step step = r == 0 ? key : c == 0 ? token : nth(steps, r * cost.columns + c);
    if (step != key) --r;
    if (step != token) --c;
  }
  return first;
}
}  // namespace

Index first_said(const Trace& target) {
  const auto said = std::ranges::find_if(target.tokens, [](const Token& token) { return token.begin >= 0; });
  return said - target.tokens.begin();
}

namespace {
/// Nothing but marks and spaces: no word that anybody says.
bool unsaid(std::string_view word) {
  return word.find_first_not_of(" \t\n.,;:!?'\"()-") == std::string_view::npos;
}
}  // namespace

std::vector<WordTime> word_times(const Trace& cross, const Trace& target, std::span<const HeadId> heads,
                                 int smoothing) {
  const Index first = first_said(target);
  if (first == std::ssize(target.tokens)) return {};
  const std::vector<double> times = token_times(cross, heads, first, smoothing);
  const SoundFrames& sound = *cross.sound;
  const auto at = [&](Index token) {
    return token - first < std::ssize(times) ? nth(times, token - first)
                                             : sound.from + std::min(sound.seconds, sound.read_seconds());
  };
  std::vector<WordTime> out;
  const WordGroups words = word_groups(std::span(target.tokens).subspan(static_cast<std::size_t>(first)));
  for (Index word = 0; word < words.words(); ++word) {
    const KeyRange tokens = words.tokens_of(word);
    std::string text;
    for (Index i = tokens.begin; i < tokens.end; ++i) text += nth(target.tokens, first + i).bytes;
    if (text.empty()) continue;  // a special token
    const Index last = first + tokens.end - 1;
    if (unsaid(text) && !out.empty()) {
      out.back().text += text.substr(std::min(text.find_first_not_of(" \t\n"), text.size()));
      out.back().last = last, out.back().end = at(last + 1);
      continue;
    }
    text.erase(0, std::min(text.find_first_not_of(" \t\n"), text.size()));
    out.push_back({std::move(text), first + tokens.begin, last, at(first + tokens.begin), at(last + 1)});
  }
  return out;
}

std::vector<HeadId> alignment_heads_or_upper_half(const std::vector<HeadId>& named, const ModelDims& decoder) {
  if (!named.empty()) return named;
  std::vector<HeadId> out;
  for (int layer = decoder.layers / 2; layer < decoder.layers; ++layer)
    for (int head = 0; head < decoder.heads; ++head) out.push_back({layer, head});
  return out;
}

std::vector<double> token_times(const Trace& cross, std::span<const HeadId> heads, Index first, int smoothing) {
  if (!cross.sound || !cross.between_texts())
    throw Error("times of tokens", "attention of a target to a sound", "other attention",
                "models of speech (Whisper) have it");
  if (smoothing < 1 || smoothing % 2 == 0)
    throw Error("times of tokens", "an odd smoothing", std::to_string(smoothing));
  const SoundFrames& sound = *cross.sound;
  const auto tokens = static_cast<Index>(cross.query_tokens.size()) - first;
  if (tokens < 1 || heads.empty())
    throw Error("times of tokens", "a token behind the prompt, and a head", heads.empty() ? "no head" : "no token");
  const double frames = std::floor(std::min(sound.seconds, sound.read_seconds()) / sound.frame_seconds + 1e-6);
  const auto keys = std::clamp<Index>(static_cast<Index>(frames) * sound.keys / sound.frames(), 1, sound.keys);
  Grid mean(tokens, keys);
  std::vector<float> row(static_cast<std::size_t>(sound.keys));
  for (const HeadId head : heads) {
    const AttentionMap& map = cross.map(head);
    Grid own(tokens, keys);
    for (Index r = 0; r < tokens; ++r) {
      map.row(first + r, row);
      for (Index c = 0; c < keys; ++c) own.at(r, c) = static_cast<double>(nth(row, c));
    }
    normalize_over_tokens(own);
    const Grid smooth = smoothed(own, smoothing);
    for (std::size_t i = 0; i < mean.values.size(); ++i)
      mean.values[i] += smooth.values[i] / static_cast<double>(heads.size());
  }
  std::vector<double> out;
  for (const Index key : reached(mean)) out.push_back(sound.from + static_cast<double>(key) * sound.key_seconds());
  return out;
}

}  // namespace headscope
