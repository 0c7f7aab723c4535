#include "core/engine/edit_action.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "core/attention/masks.h"
#include "core/attention/mechanism.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/overloaded.h"

namespace headscope {
namespace {

/// The words of one action, taken one after another.
class Words {
 public:
  Words(std::string_view text, const std::string& where, std::string_view form)
      : rest_(text), where_(where), form_(form) {}

  [[noreturn]] void fail(std::string_view found) const {
    throw Error(where_, fmt::format("{}", form_), fmt::format("\"{}\"", found));
  }
  const std::string& where() const { return where_; }
  bool empty() {
    skip();
    return rest_.empty();
  }
  std::string_view next() {
    skip();
    const auto end = rest_.find(' ');
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(word.size());
    return word;
  }
  bool take(std::string_view word) {
    skip();
    const bool there =
        rest_.substr(0, word.size()) == word && (rest_.size() == word.size() || rest_[word.size()] == ' ');
    if (there) rest_.remove_prefix(word.size());
    return there;
  }
  template <class Number>
  Number number() {
    const std::string_view word = next();
    Number value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty() || error != std::errc() || end != word.data() + word.size()) fail(word);
    return value;
  }
  /// A JSON string, so that a text of any characters can stand in one line.
  std::string quoted() {
    skip();
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    if (rest_.empty() || rest_[0] != '"' || end >= rest_.size()) fail(rest_);
    const auto value = nlohmann::json::parse(rest_.substr(0, end + 1), nullptr, false);
    if (!value.is_string()) fail(rest_);
    rest_.remove_prefix(end + 1);
    return value.get<std::string>();
  }
  std::string_view all() {
    skip();
    return std::exchange(rest_, {});
  }
  template <class Value>
  Value one_of(std::span<const std::pair<std::string_view, Value>> names) {
    const std::string_view word = next();
    for (const auto& [name, value] : names)
      if (name == word) return value;
    fail(word);
  }
  void end() {
    if (!empty()) fail(rest_);
  }

 private:
  void skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  std::string_view rest_;
  const std::string& where_;
  std::string_view form_;
};

std::string quote(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <class Value>
using Names = std::pair<std::string_view, Value>;
constexpr Names<ForcePattern::Shape> shapes[] = {{"uniform", ForcePattern::Shape::uniform},
                                                 {"previous", ForcePattern::Shape::previous},
                                                 {"self", ForcePattern::Shape::self},
                                                 {"first", ForcePattern::Shape::first}};
constexpr Names<Ablate::By> ablations[] = {
    {"zero", Ablate::By::zero}, {"mean", Ablate::By::mean}, {"resample", Ablate::By::resample}};
constexpr Names<TextPairing::By> alignments[] = {
    {"start", TextPairing::By::start}, {"end", TextPairing::By::end}, {"tokens", TextPairing::By::tokens}};
constexpr Names<SwitchOff::Part> parts[] = {{"attention", SwitchOff::Part::attention},
                                            {"mlp", SwitchOff::Part::mlp},
                                            {"ln1", SwitchOff::Part::ln1},
                                            {"ln2", SwitchOff::Part::ln2}};
constexpr Names<SiteKind> sites[] = {{"q", SiteKind::q},
                                     {"k", SiteKind::k},
                                     {"v", SiteKind::v},
                                     {"z", SiteKind::z},
                                     {"attn_out", SiteKind::attn_out},
                                     {"mlp_out", SiteKind::mlp_out},
                                     {"resid_pre", SiteKind::resid_pre},
                                     {"resid_mid", SiteKind::resid_mid},
                                     {"resid_post", SiteKind::resid_post}};

constexpr WeightMatrix matrices[] = {WeightMatrix::q,      WeightMatrix::k,      WeightMatrix::v,
                                     WeightMatrix::o,      WeightMatrix::mlp_in, WeightMatrix::mlp_gate,
                                     WeightMatrix::mlp_out};

template <class Value, std::size_t n>
std::string_view name_in(const Names<Value> (&names)[n], Value value) {
  for (const auto& [name, each] : names)
    if (each == value) return name;
  return "?";
}
template <class Value, std::size_t n>
Value read_from(Words& words, const Names<Value> (&names)[n]) {
  return words.one_of(std::span<const Names<Value>>(names));
}

/// "3=0.5", "3..7=0.5", "3..=0" (to the smallest).
ScaleSingular::Range read_range(Words& words) {
  const std::string_view word = words.next();
  const char *at = word.data(), *const end = at + word.size();
  const auto read = [&](auto& value) {
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc()) words.fail(word);
    at = next;
  };
  const auto take = [&](std::string_view sign) {
    if (!std::string_view(at, end).starts_with(sign)) return false;
    at += sign.size();
    return true;
  };
  ScaleSingular::Range range;
  read(range.first);
  range.last = range.first;
  if (take("..")) {
    range.last = 0;
    if (at != end && *at != '=') {
      read(range.last);
      if (range.last < 1) words.fail(word);
    }
  }
  if (!take("=")) words.fail(word);
  read(range.z);
  if (at != end) words.fail(word);
  return range;
}

std::string range_text(const ScaleSingular::Range& range) {
  return fmt::format("{}{}={}", range.first,
                     range.last == range.first ? ""
                     : range.last == 0         ? ".."
                                               : fmt::format("..{}", range.last),
                     range.z);
}

TextPairing read_pairing(Words& words) {
  return words.take("aligned") ? parse_pairing(words.next(), words.where()) : TextPairing{};
}
/// " aligned tokens"; nothing for the usual.
std::string aligned_words(const TextPairing& pairing) {
  return pairing == TextPairing{} ? "" : " aligned " + text_of(pairing);
}

void check_pairing(const TextPairing& pairing, const std::string& where) {
  std::set<int> here, there;
  for (const auto& [a, b] : pairing.pairs)
    if (a < 0 || b < 0 || !here.insert(a).second || !there.insert(b).second)
      throw Error(where, "pairs of positions from 0, each position once", fmt::format("{}:{}", a, b));
}

/// In the order of the alternatives of EditAction. `lead`: the words an action begins with.
struct Entry {
  EditForm form;
  std::string_view lead;
  EditAction (*read)(Words& words);
};

const auto& table() {
  static const std::array<Entry, std::variant_size_v<EditAction>> entries{{
      {{"temperature TAU", "Scores are divided by TAU: below 1 sharper, above 1 flatter.", SetTemperature{0.5}, true},
       "temperature",
       [](Words& w) -> EditAction { return SetTemperature{w.number<double>()}; }},
      {{"mask SPEC", "Another mask than the causal one.", SetMask{"window 4"}, true},
       "mask",
       [](Words& w) -> EditAction { return SetMask{std::string(w.all())}; }},
      {{"scale by length M", "Scores times ln n / ln M in a row of n keys: entropy does not grow with length.",
        ScaleByLength{}, true},
       "scale by length",
       [](Words& w) -> EditAction { return ScaleByLength{w.number<int>()}; }},
      {{"drop first COUNT [and its weight]",
        "Nobody sees the first tokens; the rest of each row is renormalised, or not.", DropFirst{}, true},
       "drop first",
       [](Words& w) -> EditAction {
         const int count = w.number<int>();
         return DropFirst{count, !w.take("and its weight")};
       }},
      {{"pattern uniform | previous | self | first", "The head looks by rule, not by its queries and keys.",
        ForcePattern{}, true},
       "pattern",
       [](Words& w) -> EditAction { return ForcePattern{read_from(w, shapes)}; }},
      {{"weight QUERY KEY VALUE", "One weight of one row; the others share the rest.", SetWeight{-1, 0, 0.5}, true},
       "weight",
       [](Words& w) -> EditAction {
         const int query = w.number<int>(), key = w.number<int>();
         return SetWeight{query, key, w.number<double>()};
       }},
      {{"freeze pattern [from \"TEXT\" [aligned start | end | tokens | I:J,…]]",
        "The pattern from before the edits, or from another text.", FreezePattern{}, true},
       "freeze pattern",
       [](Words& w) -> EditAction {
         if (!w.take("from")) return FreezePattern{};
         FreezePattern action{w.quoted()};
         action.align = read_pairing(w);
         return action;
       }},
      {{"ablate zero | mean | mean over text | mean from \"TEXT\" … | resample SEED [from \"TEXT\" …]",
        "What the head reads is replaced: the mean is of this position and those before it, of the whole text, or of "
        "reference texts.",
        Ablate{}, true},
       "ablate",
       [](Words& w) -> EditAction {
         Ablate action{read_from(w, ablations), 1};
         if (action.by == Ablate::By::resample) action.seed = w.number<std::uint64_t>();
         action.over_text = action.by == Ablate::By::mean && w.take("over text");
         if (action.by != Ablate::By::zero && !action.over_text && w.take("from")) do
             action.from.push_back(w.quoted());
           while (!w.empty());
         return action;
       }},
      {{"patch SITE from \"TEXT\" [aligned start | end | tokens | I:J,…]",
        "Activations of another text at aligned positions.", Patch{TextPairing::By::tokens, SiteKind::z, ""}, true},
       "patch",
       [](Words& w) -> EditAction {
         Patch action;
         action.site = read_from(w, sites);
         if (!w.take("from")) w.fail(w.all());
         action.text = w.quoted();
         action.align = read_pairing(w);
         return action;
       }},
      {{"switch off attention | mlp | ln1 | ln2",
        "A part of the block adds nothing; a norm passes on what it is given.", SwitchOff{}, false},
       "switch off",
       [](Words& w) -> EditAction { return SwitchOff{read_from(w, parts)}; }},
      {{"post norm", "Each norm of the block moves behind its sum: norm(x + part(x)). Not how the model was trained.",
        PostNorm{}, false},
       "post norm",
       [](Words&) -> EditAction { return PostNorm{}; }},
      {{position_words, "Another way of knowing where a token stands.",
        SetPositions{.method = SetPositions::Method::rope, .base = 500}, true},
       "position",
       [](Words& w) -> EditAction { return parse_positions(w.all(), w.where()); }},
      {{"share keys GROUPS", "Keys and values of heads become the mean of their group: fewer to keep (GQA, MQA).",
        ShareKeys{}, false},
       "share keys",
       [](Words& w) -> EditAction { return ShareKeys{w.number<int>()}; }},
      {{"latent keys RANK", "Keys and values pass through a latent of RANK numbers per token (MLA).", LatentKeys{},
        false},
       "latent keys",
       [](Words& w) -> EditAction { return LatentKeys{w.number<int>()}; }},
      {{"singular q|k|v|o|mlp_in|mlp_gate|mlp_out FIRST..LAST=Z …",
        "Singular values of a weight matrix times Z; 1 is the largest, 9.. all from the ninth on (Transformer²).",
        ScaleSingular{}, false},
       "singular",
       [](Words& w) -> EditAction {
         ScaleSingular action;
         const std::string_view name = w.next();
         const auto found = std::ranges::find(matrices, name, [](WeightMatrix m) { return name_of(m); });
         if (found == std::end(matrices)) w.fail(name);
         action.matrix = *found;
         action.scales.clear();
         do action.scales.push_back(read_range(w));
         while (!w.empty());
         return action;
       }},
      {{"mechanism ID [NAME=VALUE …]", "Another mechanism in place of softmax attention.", SwapMechanism{}, true},
       "mechanism",
       [](Words& w) -> EditAction { return SwapMechanism{text_of(parse_mechanism(w.all(), "edit: mechanism"))}; }},
  }};
  return entries;
}

}  // namespace

std::vector<double> ScaleSingular::vector(std::size_t count) const {
  std::vector<double> z(count, 1.0);
  for (const Range& range : scales) {
    const std::size_t end = range.last == 0 ? count : std::min(count, static_cast<std::size_t>(range.last));
    for (auto i = static_cast<std::size_t>(range.first - 1); i < end; ++i) z[i] = range.z;
  }
  return z;
}

ScaleSingular ScaleSingular::of(WeightMatrix matrix, const std::vector<double>& z) {
  ScaleSingular action{matrix, {}};
  for (std::size_t i = 0; i < z.size();) {
    std::size_t end = i + 1;
    while (end < z.size() && z[end] == z[i]) ++end;
    const int first = static_cast<int>(i) + 1, last = static_cast<int>(end);
    if (z[i] != 1) action.scales.push_back({first, end == z.size() && last > first ? 0 : last, z[i]});
    i = end;
  }
  if (action.scales.empty()) action.scales = {{1, 1, 1.0}};
  return action;
}

std::span<const EditForm> edit_forms() {
  static const auto forms = [] {
    std::vector<EditForm> all;
    for (const Entry& entry : table()) all.push_back(entry.form);
    return all;
  }();
  return forms;
}

const EditForm& form_of(const EditAction& action) {
  return table()[action.index()].form;
}

std::span<const SiteKind> patch_sites() {
  static const auto kinds = [] {
    std::vector<SiteKind> all;
    for (const auto& [name, kind] : sites) all.push_back(kind);
    return all;
  }();
  return kinds;
}

std::string text_of(const TextPairing& pairing) {
  if (pairing.by != TextPairing::By::hand) return std::string(name_in(alignments, pairing.by));
  if (pairing.pairs.empty()) return "none";
  std::string text;
  for (const auto& [here, there] : pairing.pairs) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", here, there);
  return text;
}

TextPairing parse_pairing(std::string_view word, const std::string& where) {
  for (const auto& [name, by] : alignments)
    if (name == word) return by;
  TextPairing pairing(TextPairing::By::hand);
  if (word == "none") return pairing;
  const auto fail = [&] {
    throw Error(where, "an alignment: start, end, tokens, none, or pairs of positions, \"0:0,3:4\"",
                fmt::format("\"{}\"", word));
  };
  const char *at = word.data(), *const end = at + word.size();
  const auto position = [&] {
    int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc()) fail();
    at = next;
    return value;
  };
  for (;;) {
    const int here = position();
    if (at == end || *at++ != ':') fail();
    pairing.pairs.emplace_back(here, position());
    if (at == end) break;
    if (*at++ != ',') fail();
  }
  check_pairing(pairing, where);
  return pairing;
}

std::string text_of(const EditAction& action) {
  return std::visit(
      Overloaded{
          [](const SetTemperature& a) { return fmt::format("temperature {}", a.tau); },
          [](const SetMask& a) { return "mask " + a.spec; },
          [](const ScaleByLength& a) { return fmt::format("scale by length {}", a.trained); },
          [](const DropFirst& a) {
            return fmt::format("drop first {}{}", a.count, a.renormalize ? "" : " and its weight");
          },
          [](const ForcePattern& a) { return fmt::format("pattern {}", name_in(shapes, a.shape)); },
          [](const SetWeight& a) { return fmt::format("weight {} {} {}", a.query, a.key, a.weight); },
          [](const FreezePattern& a) {
            return a.text.empty() ? "freeze pattern" : "freeze pattern from " + quote(a.text) + aligned_words(a.align);
          },
          [](const Ablate& a) {
            std::string text = fmt::format("ablate {}", name_in(ablations, a.by));
            if (a.by == Ablate::By::resample) text += fmt::format(" {}", a.seed);
            if (a.over_text) text += " over text";
            if (!a.from.empty()) text += " from";
            for (const std::string& each : a.from) text += " " + quote(each);
            return text;
          },
          [](const Patch& a) {
            return fmt::format("patch {} from {}{}", name_in(sites, a.site), quote(a.text), aligned_words(a.align));
          },
          [](const SwitchOff& a) { return fmt::format("switch off {}", name_in(parts, a.part)); },
          [](const PostNorm&) { return std::string("post norm"); }, [](const SetPositions& a) { return text_of(a); },
          [](const ShareKeys& a) { return fmt::format("share keys {}", a.groups); },
          [](const LatentKeys& a) { return fmt::format("latent keys {}", a.rank); },
          [](const ScaleSingular& a) {
            std::string text = fmt::format("singular {}", name_of(a.matrix));
            for (const ScaleSingular::Range& range : a.scales) text += " " + range_text(range);
            return text;
          },
          [](const SwapMechanism& a) { return "mechanism " + a.spec; }},
      action);
}

EditAction parse_edit_action(std::string_view text, const std::string& where) {
  for (const Entry& entry : table()) {
    Words words(text, where, entry.form.form);
    if (!words.take(entry.lead)) continue;
    EditAction action = entry.read(words);
    words.end();
    check(action, where);
    return action;
  }
  std::vector<std::string_view> forms;
  for (const EditForm& form : edit_forms()) forms.push_back(form.form);
  throw Error(where, "an edit", fmt::format("\"{}\"", text), fmt::format("edits are: {}", fmt::join(forms, "; ")));
}

void check(const EditAction& action, const std::string& where) {
  const auto need = [&](bool holds, std::string expected, auto found) {
    if (!holds) throw Error(where, expected, fmt::format("{}", found));
  };
  std::visit(
      Overloaded{
          [&](const SetTemperature& a) {
            need(a.tau >= SetTemperature::lowest && a.tau <= SetTemperature::highest,
                 fmt::format("a temperature from {} to {}", SetTemperature::lowest, SetTemperature::highest), a.tau);
          },
          [&](const SetMask& a) { parse_mask(a.spec, where); },
          [&](const ScaleByLength& a) { need(a.trained >= 2, "a trained length from 2", a.trained); },
          [&](const DropFirst& a) { need(a.count >= 1, "at least 1 token to drop", a.count); },
          [&](const ForcePattern&) {},
          [&](const SetWeight& a) { need(a.weight >= 0 && a.weight <= 1, "a weight from 0 to 1", a.weight); },
          [&](const FreezePattern& a) {
            need(!a.text.empty() || a.align == TextPairing{}, "a text whose positions are aligned", "none");
            check_pairing(a.align, where);
          },
          [&](const Ablate& a) {
            need(!a.over_text || (a.by == Ablate::By::mean && a.from.empty()), "\"over text\" of the mean alone",
                 "both");
            need(a.from.empty() || a.by != Ablate::By::zero, "a mean or a resampling from texts", "zero");
            need(std::ranges::none_of(a.from, &std::string::empty), "reference texts", "an empty one");
          },
          [&](const Patch& a) {
            need(!a.text.empty(), "a text to patch from", "none");
            check_pairing(a.align, where);
            need(std::ranges::count(patch_sites(), a.site) == 1, "a site that can be patched", info(a.site).pattern);
          },
          [&](const SwitchOff&) {}, [&](const PostNorm&) {}, [&](const SetPositions& a) { check(a, where); },
          [&](const ShareKeys& a) { need(a.groups >= 1, "at least 1 group of heads", a.groups); },
          [&](const LatentKeys& a) { need(a.rank >= 1, "a rank from 1", a.rank); },
          [&](const ScaleSingular& a) {
            need(!a.scales.empty(), "at least one scale such as 1..4=0.5", "none");
            for (const ScaleSingular::Range& range : a.scales) {
              need(range.first >= 1 && (range.last == 0 || range.last >= range.first),
                   "singular values counted from 1, the largest", range_text(range));
              need(std::abs(range.z) <= ScaleSingular::largest,
                   fmt::format("a scale from -{0} to {0}", ScaleSingular::largest), range.z);
            }
          },
          [&](const SwapMechanism& a) {
            const Mechanism& mechanism = *parse_mechanism(a.spec, where).mechanism;
            need(!mechanism.study, "a mechanism that turns q, k and v into an output",
                 fmt::format("{}, a study of numbers", mechanism.id));
          }},
      action);
}

}  // namespace headscope
