#include "core/text/tokenizer_json_steps.h"

#include <fmt/format.h>

#include <array>

#include "core/base/utf8.h"

namespace headscope {

namespace {

constexpr int kDeepestNesting = 8;
// What WordPiece's decoder does to each token when it cleans up.
constexpr std::array<std::pair<const char*, const char*>, 11> kCleanUp{{{" .", "."},
                                                                        {" ?", "?"},
                                                                        {" !", "!"},
                                                                        {" ,", ","},
                                                                        {" ' ", "'"},
                                                                        {" n't", "n't"},
                                                                        {" 'm", "'m"},
                                                                        {" do not", " don't"},
                                                                        {" 's", "'s"},
                                                                        {" 've", "'ve"},
                                                                        {" 're", "'re"}}};
// As the tokenizers package knows it, by Unicode 8: what has become punctuation since is none, and two signs still are.
constexpr const char* kPunctuation =
    R"((?![\x{61d}\x{9fd}\x{a76}\x{c77}\x{c84}\x{1b7d}\x{1b7e}\x{2e43}-\x{2e5d}\x{10ead}\x{10f55}-\x{10f89})"
    R"(\x{1144b}-\x{1144f}\x{1145a}-\x{1145d}\x{11660}-\x{1166c}\x{116b9}\x{1183b}\x{11944}-\x{11946}\x{119e2})"
    R"(\x{11a3f}-\x{11a46}\x{11a9a}-\x{11aa2}\x{11c41}-\x{11c71}\x{11ef7}\x{11ef8}\x{11fff}\x{12ff1}\x{12ff2})"
    R"(\x{16e97}-\x{16e9a}\x{16fe2}\x{1e95e}\x{1e95f}])"
    R"()[\p{P}\x{166d}\x{111c9}\x{21}-\x{2f}\x{3a}-\x{40}\x{5b}-\x{60}\x{7b}-\x{7e}])";
// Whitespace's "\w+|[^\w\s]+" with the words of Rust's regular expressions (UTS #18), which are not Oniguruma's.
constexpr const char* kWordsOrSigns =
    R"([\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}]+)"
    R"(|[^\s\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}]+)";
constexpr std::string_view kGiveIds = "the text can be given as token ids (--ids) that another program made";

[[noreturn]] void unsupported(const JsonView& step, const std::string& supported) {
  step.at("type").refuse(supported, step.at("type").shown(), std::string(kGiveIds));
}

/// Calls `each` for a step that is no Sequence, or for all steps of a Sequence (whose list is under `key`).
template <class Each>
void for_each_step(const JsonView& step, const char* key, const Each& each, int depth = 0) {
  if (depth > kDeepestNesting)
    step.refuse(fmt::format("at most {} Sequences inside each other", kDeepestNesting), "more");
  if (step.at("type").text() != "Sequence") return each(step);
  for (const JsonView& inner : step.at(key).elements()) for_each_step(inner, key, each, depth + 1);
}

Pattern read_pattern(const JsonView& pattern) {
  if (pattern.is_text()) return Pattern::literal(pattern.text(), pattern.where());
  if (const auto text = pattern.find("String")) return Pattern::literal(text->text(), text->where());
  if (const auto regex = pattern.find("Regex")) return Pattern::regex(regex->text(), regex->where());
  pattern.refuse("a String or a Regex", pattern.shown());
}

SplitStep::Behavior read_behavior(const JsonView& behavior) {
  const std::string name = behavior.text();
  if (name == "Removed") return SplitStep::Behavior::removed;
  if (name == "Isolated") return SplitStep::Behavior::isolated;
  if (name == "MergedWithPrevious") return SplitStep::Behavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitStep::Behavior::merged_with_next;
  if (name == "Contiguous") return SplitStep::Behavior::contiguous;
  behavior.refuse("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous", behavior.shown());
}

SplitStep fixed_split(const char* pattern, const JsonView& step, SplitStep::Behavior behavior, bool invert = false) {
  return {Pattern::regex(pattern, step.where()), behavior, invert};
}

PrefixStep::Scheme read_scheme(const JsonView& step) {
  const auto scheme = step.find("prepend_scheme");
  if (!scheme)  // older files say it with a flag
    return step.flag_or("add_prefix_space", true) ? PrefixStep::Scheme::always : PrefixStep::Scheme::never;
  if (scheme->text() == "always") return PrefixStep::Scheme::always;
  if (scheme->text() == "first") return PrefixStep::Scheme::first;
  if (scheme->text() == "never") return PrefixStep::Scheme::never;
  scheme->refuse("always, first or never", scheme->shown());
}

void read_bert_normalizer(const JsonView& step, std::vector<NormalizerStep>& steps) {
  const bool lowercase = step.flag_or("lowercase", true);
  if (step.flag_or("clean_text", true)) steps.emplace_back(CharacterStep{clean_text});
  if (step.flag_or("handle_chinese_chars", true)) steps.emplace_back(CharacterStep{ideographs_apart});
  if (step.flag_or("strip_accents", lowercase)) {
    steps.emplace_back(NormalFormStep{NormalForm::nfd});
    steps.emplace_back(CharacterStep{without_nonspacing_marks});
  }
  if (lowercase) steps.emplace_back(CharacterStep{lower_case});
}

void read_precompiled(const JsonView& step, std::vector<NormalizerStep>& steps) {
  const auto table = step.find("precompiled_charsmap");
  if (!table || table->text().empty()) return;  // no rules
  const std::string bytes = bytes_from_base64(table->text(), table->where());
  steps.emplace_back(PrecompiledStep{std::make_shared<PrecompiledCharsmap>(bytes, table->where())});
}

/// A character that stands for itself in a text to split at.
Pattern read_delimiter(const JsonView& delimiter) {
  const std::string text = delimiter.text();
  if (text.empty() || text.size() != static_cast<std::size_t>(utf8_length(text.front())))
    delimiter.refuse("one character", delimiter.shown());
  return Pattern::literal(text, delimiter.where());
}

}  // namespace

void read_normalizer(const JsonView& normalizer, std::vector<NormalizerStep>& steps) {
  for_each_step(normalizer, "normalizers", [&](const JsonView& step) {
    const std::string type = step.at("type").text();
    if (type == "Prepend")
      steps.emplace_back(PrependStep{step.at("prepend").text()});
    else if (type == "Replace")
      steps.emplace_back(ReplaceStep{read_pattern(step.at("pattern")), step.at("content").text()});
    else if (type == "NFC")
      steps.emplace_back(NormalFormStep{NormalForm::nfc});
    else if (type == "NFD")
      steps.emplace_back(NormalFormStep{NormalForm::nfd});
    else if (type == "NFKC")
      steps.emplace_back(NormalFormStep{NormalForm::nfkc});
    else if (type == "NFKD")
      steps.emplace_back(NormalFormStep{NormalForm::nfkd});
    else if (type == "Lowercase")
      steps.emplace_back(CharacterStep{lower_case});
    else if (type == "StripAccents")
      steps.emplace_back(CharacterStep{without_marks});
    else if (type == "Nmt")
      steps.emplace_back(CharacterStep{nmt});
    else if (type == "BertNormalizer")
      read_bert_normalizer(step, steps);
    else if (type == "Precompiled")
      read_precompiled(step, steps);
    else if (type == "Strip")
      steps.emplace_back(StripStep{step.flag_or("strip_left", true), step.flag_or("strip_right", true)});
    else
      unsupported(
          step,
          "Prepend, Replace, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, BertNormalizer, Precompiled, Nmt or "
          "Sequence");
  });
}

WordUnits read_pre_tokenizer(const JsonView& pre_tokenizer, std::optional<bool> add_prefix_space,
                             std::vector<PreTokenizerStep>& steps) {
  WordUnits units = WordUnits::characters;
  const bool alone = pre_tokenizer.at("type").text() == "ByteLevel";
  for_each_step(pre_tokenizer, "pretokenizers", [&](const JsonView& step) {
    const std::string type = step.at("type").text();
    if (units == WordUnits::bytes) {
      steps.emplace_back(ByteAlphabetStep{});
      units = WordUnits::byte_alphabet;
    }
    if (type == "ByteLevel") {
      if (units != WordUnits::characters) step.refuse("one ByteLevel", "a second one", std::string(kGiveIds));
      const bool written = step.flag_or("add_prefix_space", true);
      add_byte_level_steps(steps, alone ? add_prefix_space.value_or(written) : written, step.flag_or("use_regex", true),
                           step.where());
      units = WordUnits::bytes;
    } else if (type == "Split") {
      steps.emplace_back(SplitStep{read_pattern(step.at("pattern")), read_behavior(step.at("behavior")),
                                   step.flag_or("invert", false)});
    } else if (type == "Metaspace") {
      const std::string mark = step.text_or("replacement", "▁");
      steps.emplace_back(PrefixStep{mark, read_scheme(step), true});
      if (step.flag_or("split", true))
        steps.emplace_back(
            SplitStep{Pattern::literal(mark, step.where()), SplitStep::Behavior::merged_with_next, false});
    } else if (type == "Digits") {
      steps.emplace_back(fixed_split(step.flag_or("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)", step,
                                     SplitStep::Behavior::isolated));
    } else if (type == "Punctuation") {
      const auto behavior = step.find("behavior");
      steps.emplace_back(
          fixed_split(kPunctuation, step, behavior ? read_behavior(*behavior) : SplitStep::Behavior::isolated));
    } else if (type == "BertPreTokenizer") {
      steps.emplace_back(fixed_split(R"(\s)", step, SplitStep::Behavior::removed));
      steps.emplace_back(fixed_split(kPunctuation, step, SplitStep::Behavior::isolated));
    } else if (type == "CharDelimiterSplit") {
      steps.emplace_back(SplitStep{read_delimiter(step.at("delimiter")), SplitStep::Behavior::removed, false});
    } else if (type == "WhitespaceSplit") {
      steps.emplace_back(fixed_split(R"(\s)", step, SplitStep::Behavior::removed));
    } else if (type == "Whitespace") {
      steps.emplace_back(fixed_split(kWordsOrSigns, step, SplitStep::Behavior::removed, true));
    } else {
      unsupported(step,
                  "ByteLevel, Split, Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer, "
                  "CharDelimiterSplit or Sequence");
    }
  });
  return units;
}

bool takes_spaces_away(const JsonView& pre_tokenizer) {
  bool takes = false;
  for_each_step(pre_tokenizer, "pretokenizers", [&](const JsonView& step) {
    const std::string type = step.at("type").text();
    takes = takes || type == "Whitespace" || type == "WhitespaceSplit" || type == "BertPreTokenizer";
  });
  return takes;
}

void read_decoder(const JsonView& decoder, SpellingRule& rule) {
  bool fused = false;
  for_each_step(decoder, "decoders", [&](const JsonView& step) {
    const std::string type = step.at("type").text();
    if (type == "ByteLevel") {
      rule.byte_level = true;
    } else if (type == "ByteFallback") {
      rule.byte_fallback = true;
    } else if (type == "Fuse") {
      fused = true;  // tokens are put together without anything between them in any case
    } else if (type == "Replace") {
      const JsonView pattern = step.at("pattern");
      const std::string from = pattern.is_text() ? pattern.text() : pattern.at("String").text();
      if (from.empty()) pattern.refuse("a text to look for", "an empty string");
      rule.replace.emplace_back(from, step.at("content").text());
    } else if (type == "Strip") {
      const std::int64_t start = step.at("start").integer(), stop = step.at("stop").integer();
      if (step.at("content").text() != " " || start < 0 || start > 1 || stop != 0)
        step.refuse("at most one space taken away at the start", step.shown());
      if (!fused && start == 1) step.refuse("Fuse before it, so that it takes one space of the whole text", "none");
      rule.strips_leading_space = rule.strips_leading_space || start == 1;
    } else if (type == "Metaspace") {
      rule.replace.emplace_back(step.text_or("replacement", "▁"), " ");
      rule.strips_leading_space = read_scheme(step) != PrefixStep::Scheme::never;
    } else if (type == "WordPiece") {
      rule.inside_prefix = step.text_or("prefix", "##");
      rule.strips_leading_space = true;
      if (step.flag_or("cleanup", true))
        for (const auto& [from, to] : kCleanUp) rule.replace.emplace_back(from, to);
    } else {
      unsupported(step, "ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, WordPiece or Sequence");
    }
  });
}

TextFrame read_text_frame(const JsonView& post_processor, const Vocabulary& vocabulary) {
  TextFrame frame;
  const auto known = [&](const JsonView& name) {
    const auto id = vocabulary.find(name.text());
    if (!id) name.refuse("a token of the vocabulary", fmt::format("'{}'", name.text()));
    return *id;
  };
  for_each_step(post_processor, "processors", [&](const JsonView& step) {
    const std::string type = step.at("type").text();
    if (type == "ByteLevel") return;  // only trims offsets
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      for (const char* key : {"cls", "sep"}) {  // ["[CLS]", 101]
        const std::vector<JsonView> named = step.at(key).elements();
        if (named.empty()) step.at(key).refuse("a token and its id", step.at(key).shown());
        const std::int32_t id = known(named.front());
        (key == std::string_view("cls") ? frame.front : frame.behind) = id;
      }
      return;
    }
    if (type != "TemplateProcessing")
      unsupported(step, "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel or Sequence");
    bool text_seen = false, of_speech = false;
    for (const JsonView& item : step.at("single").elements()) {
      const auto special = item.find("SpecialToken");
      if (!special) {
        text_seen = true;
        continue;
      }
      const JsonView name = special->at("id");
      const std::int32_t id = known(name);
      if (text_seen) {
        if (!frame.behind) frame.behind = id;
        continue;
      }
      // Whisper's: what stands in front of a target its configuration says (core/run/target_rules.h).
      of_speech = of_speech || name.text() == "<|startoftranscript|>";
      if (of_speech) continue;
      if (frame.front)
        special->refuse("at most one special token before the text", fmt::format("a further one, '{}'", name.text()),
                        std::string(kGiveIds));
      frame.front = id;
    }
  });
  return frame;
}

}  // namespace headscope
