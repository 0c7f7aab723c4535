#include "core/engine/position_edit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/error.h"

namespace headscope {

namespace {

using Method = SetPositions::Method;

std::vector<std::string_view> words_of(std::string_view text, char separator = ' ') {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

/// The words that are left, taken one after another.
class Reader {
 public:
  Reader(std::string_view text, const std::string& where) : words_(words_of(text)), where_(where) {}
  bool take(std::string_view word) {
    if (at_ == words_.size() || words_[at_] != word) return false;
    ++at_;
    return true;
  }
  std::string_view next() {
    if (at_ == words_.size()) fail("nothing more");
    return words_[at_++];
  }
  template <class Number>
  Number number(std::string_view word) const {
    Number value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) fail(word);
    return value;
  }
  template <class Number>
  Number number() {
    return number<Number>(next());
  }
  bool empty() const { return at_ == words_.size(); }
  /// Whether the next word begins a number.
  bool number_follows() const { return !empty() && (words_[at_][0] == '.' || std::isdigit(words_[at_][0])); }
  [[noreturn]] void fail(std::string_view found) const {
    throw Error(where_, std::string(position_words), fmt::format("\"{}\"", found));
  }
  void end() const {
    if (at_ < words_.size()) fail(words_[at_]);
  }

 private:
  std::vector<std::string_view> words_;
  const std::string& where_;
  std::size_t at_ = 0;
};

void read_rope(Reader& reader, SetPositions& edit) {
  while (!reader.empty()) {
    if (reader.take("base")) {
      edit.base = reader.number<double>();
    } else if (reader.take("scaling")) {
      const std::string_view name = reader.next();
      const auto known = std::ranges::find(rotary_scalings(), name, &RotaryScalingInfo::id);
      if (known == rotary_scalings().end()) reader.fail(name);
      edit.scaling = known->scaling;
      if (known->scaling != RotaryConfig::Scaling::none) edit.factor = reader.number<double>();
    } else {
      reader.fail(reader.next());
    }
  }
}

}  // namespace

std::string text_of(const SetPositions& edit) {
  const std::string on_top = edit.on_top ? " on top" : "";
  switch (edit.method) {
    case Method::none:
      return "position none";
    case Method::sinusoidal:
      return "position sinusoidal";
    case Method::alibi:
      return "position alibi" + on_top;
    case Method::t5:
      return fmt::format("position t5 {} bias {}{}", edit.max_distance, fmt::join(edit.bias, ","), on_top);
    case Method::chunks:
      return fmt::format("position chunks {}", edit.chunk);
    case Method::shift:
      return fmt::format("position shift {}", edit.shift);
    case Method::rope: {
      std::string text = "position rope";
      if (edit.base) text += fmt::format(" base {}", *edit.base);
      if (edit.scaling) {
        text += fmt::format(" scaling {}", info(*edit.scaling).id);
        if (*edit.scaling != RotaryConfig::Scaling::none) text += fmt::format(" {}", edit.factor);
      }
      return text;
    }
  }
  return "";
}

SetPositions parse_positions(std::string_view words, const std::string& where) {
  Reader reader(words, where);
  SetPositions edit;
  if (reader.take("none")) {
    edit.method = Method::none;
  } else if (reader.take("sinusoidal")) {
    edit.method = Method::sinusoidal;
  } else if (reader.take("rope")) {
    edit.method = Method::rope;
    read_rope(reader, edit);
  } else if (reader.take("alibi")) {
    edit.method = Method::alibi;
  } else if (reader.take("chunks")) {
    edit.method = Method::chunks;
    edit.chunk = reader.number<int>();
  } else if (reader.take("shift")) {
    edit.method = Method::shift;
    edit.shift = reader.number<int>();
  } else if (reader.take("t5")) {
    edit.method = Method::t5;
    edit.max_distance = reader.number<int>();
    if (!reader.take("bias")) reader.fail(reader.next());
    for (const std::string_view each : words_of(reader.next(), ',')) edit.bias.push_back(reader.number<float>(each));
  } else {
    reader.fail(reader.empty() ? "" : reader.next());
  }
  if ((edit.method == Method::alibi || edit.method == Method::t5) && reader.take("on")) {
    if (!reader.take("top")) reader.fail("on");
    edit.on_top = true;
  }
  reader.end();
  return edit;
}

void check(const SetPositions& edit, const std::string& where) {
  const auto need = [&](bool holds, std::string expected, auto found) {
    if (!holds) throw Error(where, expected, fmt::format("{}", found));
  };
  if (edit.base)
    need(*edit.base >= SetPositions::lowest_base && *edit.base <= SetPositions::highest_base,
         fmt::format("a base from {} to {:g}", SetPositions::lowest_base, SetPositions::highest_base), *edit.base);
  if (edit.scaling.value_or(RotaryConfig::Scaling::none) != RotaryConfig::Scaling::none)
    need(edit.factor >= 1 && edit.factor <= SetPositions::highest_factor,
         fmt::format("a factor from 1 to {:g}", SetPositions::highest_factor), edit.factor);
  if (edit.method == Method::shift)
    need(edit.shift >= 0 && edit.shift <= SetPositions::most_shift,
         fmt::format("a shift from 0 to {}", SetPositions::most_shift), edit.shift);
  if (edit.method == Method::chunks)
    need(edit.chunk >= 1 && edit.chunk <= SetPositions::most_distance,
         fmt::format("chunks of 1 to {} tokens", SetPositions::most_distance), edit.chunk);
  if (edit.method == Method::t5) {
    need(edit.bias.size() >= 2 && edit.bias.size() <= SetPositions::most_buckets,
         fmt::format("2 to {} buckets", SetPositions::most_buckets), edit.bias.size());
    need(edit.max_distance > static_cast<int>(edit.bias.size() / 2) && edit.max_distance <= SetPositions::most_distance,
         fmt::format("a largest distance from {} to {}", edit.bias.size() / 2 + 1, SetPositions::most_distance),
         edit.max_distance);
    for (const float each : edit.bias) need(std::isfinite(each), "finite biases", each);
  }
}

RotaryConfig rotary_of(const SetPositions& edit, const ModelConfig& model) {
  RotaryConfig own = model.position == PositionKind::rotary ? model.rotary : RotaryConfig{};
  if (edit.base) own.base = *edit.base;
  return edit.scaling ? rescaled(own, *edit.scaling, edit.factor, model.context) : own;
}

}  // namespace headscope
