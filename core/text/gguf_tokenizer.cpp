#include "core/text/gguf_tokenizer.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/io/gguf.h"
#include "core/text/bpe.h"
#include "core/text/pipeline_tokenizer.h"
#include "core/text/sentencepiece_model.h"
#include "core/text/sentencepiece_tokenizer.h"

namespace headscope {

namespace {

/// How a text is cut into words, by what llama.cpp calls it ("tokenizer.ggml.pre"); the patterns are those of the
/// models' tokenizer.json.
struct WordRule {
  std::string_view name;
  std::string_view pattern;    ///< "" = GPT-2's
  bool splits_digits = false;  ///< before the pattern
  bool whole_words = false;    ///< a word that is a token as a whole is not taken apart (Llama 3)
  bool adds_bos = false;
  bool composes = false;  ///< letters and their marks are made one before all else (NFC)
};
constexpr std::string_view llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::array word_rules{
    WordRule{"gpt-2", ""},
    WordRule{"phi-2", ""},
    WordRule{"mpt", ""},
    WordRule{"olmo", ""},
    WordRule{"llama-bpe", llama3_pattern, false, true, true},
    WordRule{"llama-v3", llama3_pattern, false, true, true},
    WordRule{"llama3", llama3_pattern, false, true, true},
    WordRule{"smaug-bpe", llama3_pattern},
    WordRule{"qwen2", qwen2_pattern, false, false, false, true},
    WordRule{"stablelm2", qwen2_pattern},
    WordRule{"deepseek-r1-qwen", qwen2_pattern, false, false, true, true},
    WordRule{"smollm", "", true},
    WordRule{"starcoder", "", true},
    WordRule{"refact", "", true},
    WordRule{"codeshell", "", true},
    WordRule{"command-r", "", true},
};

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : file_(GgufFile::open(path)), where_(path.string()) {}

  std::shared_ptr<const Tokenizer> read() {
    const std::string* const kind = file_.find<std::string>("tokenizer.ggml.model");
    if (!kind || *kind == "no_vocab") return nullptr;
    tokens_ = file_.find<std::vector<std::string>>("tokenizer.ggml.tokens");
    if (!tokens_ || tokens_->empty()) throw error("tokens", "a list of tokens", "none");
    if (const auto* const types = file_.find<std::vector<std::int64_t>>("tokenizer.ggml.token_type")) {
      same_length(types->size(), "token_type");
      types_ = *types;
    }
    settings_.folder = file_.path();
    settings_.config_bos = id("bos_token_id");
    settings_.config_eos = id("eos_token_id");
    if (const bool* const adds = file_.find<bool>("tokenizer.ggml.add_bos_token")) settings_.add_bos = *adds;
    if (*kind == "gpt2") return byte_pairs();
    if (*kind == "llama" || *kind == "t5") return pieces(*kind == "t5");
    throw error("model", "gpt2, llama or t5", "\"" + excerpt(*kind, 60) + "\"",
                "the text can be given as token ids (--ids) that another program made");
  }

 private:
  using Type = SentencePieceParts::Type;

  Error error(const char* key, const std::string& expected, const std::string& found, const std::string& hint = "") {
    return Error(fmt::format("{}: tokenizer.ggml.{}", where_, key), expected, found, hint);
  }

  void same_length(std::size_t length, const char* key) {
    if (length != tokens_->size())
      throw error(key, fmt::format("{} items, one for each token", tokens_->size()), fmt::format("{}", length));
  }

  std::optional<std::int64_t> id(const char* key) {
    const auto* const value = file_.find<std::int64_t>(std::string("tokenizer.ggml.") + key);
    return value ? std::optional(*value) : std::nullopt;
  }

  Type type(std::size_t token) {
    const std::int64_t told = types_.empty() ? std::int64_t{Type::normal} : types_[token];
    if (told < Type::normal || told > Type::byte)
      throw error("token_type", "kinds from 1 to 6", fmt::format("{} of token {}", told, token));
    return static_cast<Type>(told);
  }

  const WordRule& word_rule() {
    const std::string* const name = file_.find<std::string>("tokenizer.ggml.pre");
    // Files older than the key hold GPT-2's rule, or were made wrong by the converters of their day.
    const std::string* const architecture = file_.find<std::string>("general.architecture");
    if (!name && architecture && *architecture == "gpt2") return word_rules.front();
    std::string known;
    for (const WordRule& rule : word_rules) {
      if (name && *name == rule.name) return rule;
      known += (known.empty() ? "" : ", ") + std::string(rule.name);
    }
    throw error("pre", "one of " + known, name ? "\"" + excerpt(*name, 60) + "\"" : "none",
                "the text can be given as token ids (--ids) that another program made");
  }

  std::shared_ptr<const Tokenizer> byte_pairs() {
    const WordRule& rule = word_rule();
    PipelineParts parts;
    std::vector<Vocabulary::Entry> words;
    std::vector<BpeModel::Merge> merges;
    parts.where = where_ + ": tokenizer.ggml.tokens";
    for (std::size_t i = 0; i < tokens_->size(); ++i) {
      const std::string& token = (*tokens_)[i];
      const auto number = static_cast<std::int32_t>(i);
      if (const Type kind = type(i); kind == Type::control || kind == Type::user_defined) {
        AddedToken added;
        added.content = token;
        added.id = number;
        added.special = kind == Type::control;
        if (!token.empty()) parts.added.push_back(std::move(added));
        continue;
      }
      words.push_back({token, number});
    }
    parts.vocabulary = join_vocabulary(parts.where, words, parts.added, settings_);
    const auto* const lines = file_.find<std::vector<std::string>>("tokenizer.ggml.merges");
    if (!lines) throw error("merges", "a list of merges", "none");
    for (std::size_t i = 0; i < lines->size(); ++i) {
      const std::string& line = (*lines)[i];
      const std::string where = fmt::format("{}: tokenizer.ggml.merges[{}]", where_, i);
      // The first letter may be a space itself: then the one that parts both is looked for behind it.
      const std::size_t space = line.find(' ', 1);
      if (space == std::string::npos || line.empty())
        throw Error(where, "two tokens with a space between", "\"" + excerpt(line, 60) + "\"");
      merges.push_back(merge_of(parts.vocabulary, line.substr(0, space), line.substr(space + 1), where));
    }
    parts.spelling.byte_level = true;
    parts.model = make_bpe(words, std::move(merges), {.byte_level = true, .ignore_merges = rule.whole_words});
    const std::string pre = where_ + ": tokenizer.ggml.pre";
    const auto split = [&](std::string_view pattern) {
      parts.pre_tokenizer.emplace_back(SplitStep{.pattern = Pattern::regex(pattern, pre)});
    };
    if (const bool* const space = file_.find<bool>("tokenizer.ggml.add_space_prefix"); space && *space)
      parts.pre_tokenizer.emplace_back(PrefixStep{.prefix = " "});
    if (rule.composes) parts.normalizer.emplace_back(NormalFormStep{NormalForm::nfc});
    if (rule.splits_digits) split(R"(\p{N})");
    split(rule.pattern.empty() ? Pattern::gpt2_words() : rule.pattern);
    parts.special = special_ids(settings_, parts.vocabulary, std::nullopt, rule.adds_bos);
    parts.description = "byte-level BPE";
    return make_pipeline_tokenizer(std::move(parts));
  }

  std::shared_ptr<const Tokenizer> pieces(bool unigram) {
    const auto* const scores = file_.find<std::vector<double>>("tokenizer.ggml.scores");
    if (!scores) throw error("scores", "a list of scores", "none");
    same_length(scores->size(), "scores");
    if (types_.empty()) throw error("token_type", "a list of kinds", "none");
    SentencePieceParts parts;
    for (std::size_t i = 0; i < tokens_->size(); ++i)
      parts.pieces.push_back({(*tokens_)[i], static_cast<float>((*scores)[i]), type(i)});
    parts.unigram = unigram;
    const auto flag = [&](const char* key, bool fallback) {
      const bool* const value = file_.find<bool>(std::string("tokenizer.ggml.") + key);
      return value ? *value : fallback;
    };
    parts.space_in_front = flag("add_space_prefix", true);
    parts.joins_spaces = flag("remove_extra_whitespaces", false);
    if (file_.keys().contains("tokenizer.ggml.precompiled_charsmap"))
      throw error("precompiled_charsmap", "none: characters are taken as they stand", "one",
                  "the text can be given as token ids (--ids) that another program made");
    return make_sentencepiece(serialized(parts), where_ + ": tokenizer.ggml.tokens", settings_);
  }

  GgufFile file_;
  std::string where_;
  const std::vector<std::string>* tokens_ = nullptr;
  std::vector<std::int64_t> types_;
  TokenizerSettings settings_;
};

}  // namespace

std::shared_ptr<const Tokenizer> read_gguf_tokenizer(const std::filesystem::path& path) {
  return Reader(path).read();
}

}  // namespace headscope
