// tokenizer.json, the file format of Hugging Face's tokenizers library. What is not supported is refused by its key.

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/io/json_view.h"
#include "core/text/bpe.h"
#include "core/text/pipeline_tokenizer.h"
#include "core/text/tokenizer_json_steps.h"
#include "core/text/unigram.h"
#include "core/text/word_piece.h"

namespace headscope {

namespace {

std::vector<Vocabulary::Entry> read_vocab(const JsonView& vocab) {
  if (!vocab.is_object()) vocab.refuse("an object of tokens and ids", vocab.shown());
  std::vector<Vocabulary::Entry> entries;
  entries.reserve(vocab.json().size());
  for (const auto& [spelling, id] : vocab.json().items()) {
    if (!id.is_number_integer())
      JsonView(id, fmt::format("{}.{}", vocab.where(), excerpt(spelling))).integer();  // throws
    entries.push_back({spelling, id.get<std::int64_t>()});
  }
  return entries;
}

/// "a b" in older files, ["a", "b"] in newer ones, whose tokens may then hold spaces.
std::vector<BpeModel::Merge> read_merges(const JsonView& merges, const Vocabulary& vocabulary) {
  if (!merges.is_array()) merges.refuse("an array of merges", merges.shown());
  std::vector<BpeModel::Merge> read;
  read.reserve(merges.json().size());
  for (const auto& merge : merges.json()) {
    const std::string where = fmt::format("{}[{}]", merges.where(), read.size());
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      read.push_back(merge_of(vocabulary, merge[0].get<std::string>(), merge[1].get<std::string>(), where));
      continue;
    }
    const std::string line = merge.is_string() ? merge.get<std::string>() : "";
    const auto space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
      JsonView(merge, where).refuse("two tokens: \"a b\" or [\"a\", \"b\"]", JsonView(merge, where).shown());
    read.push_back(merge_of(vocabulary, line.substr(0, space), line.substr(space + 1), where));
  }
  return read;
}

std::vector<AddedToken> read_added(const JsonView& file) {
  std::vector<AddedToken> added;
  const auto list = file.find("added_tokens");
  if (!list) return added;
  for (const JsonView& entry : list->elements()) {
    AddedToken token;
    token.content = entry.at("content").text();
    if (token.content.empty()) entry.refuse("a token with content", "an empty one");
    const std::int64_t id = entry.at("id").integer();
    if (id < 0 || id > INT32_MAX) entry.refuse("a token id", fmt::format("{}", id));
    token.id = static_cast<std::int32_t>(id);
    token.special = entry.flag_or("special", false);
    token.single_word = entry.flag_or("single_word", false);
    token.lstrip = entry.flag_or("lstrip", false);
    token.rstrip = entry.flag_or("rstrip", false);
    token.normalized = entry.flag_or("normalized", !token.special);
    added.push_back(std::move(token));
  }
  return added;
}

void refuse_unsupported(const JsonView& model) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const auto found = model.find(key); found && !found->text().empty())
      found->refuse("none: tokens that mark the inside or the end of words are not supported", found->shown());
  if (const auto dropout = model.find("dropout"); dropout && dropout->json() != 0)
    dropout->refuse("none: the same text must always give the same tokens", dropout->shown());
}

std::optional<std::array<std::int32_t, 256>> read_byte_fallback(const JsonView& model, const Vocabulary& vocabulary) {
  if (!model.flag_or("byte_fallback", false)) return std::nullopt;
  std::array<std::int32_t, 256> ids;
  for (std::size_t byte = 0; byte < 256; ++byte)
    ids[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  return ids;
}

/// [["▁the", -3.5], …], the id of each its place.
std::vector<UnigramModel::Entry> read_pieces(const JsonView& vocab) {
  if (!vocab.is_array()) vocab.refuse("an array of pieces and scores", vocab.shown());
  std::vector<UnigramModel::Entry> pieces;
  pieces.reserve(vocab.json().size());
  for (const auto& piece : vocab.json()) {
    if (!piece.is_array() || piece.size() != 2 || !piece[0].is_string() || !piece[1].is_number()) {
      const JsonView broken(piece, fmt::format("{}[{}]", vocab.where(), pieces.size()));
      broken.refuse("a piece and its score", broken.shown());
    }
    pieces.push_back({piece[0].get<std::string>(), piece[1].get<double>()});
  }
  return pieces;
}

/// What is looked for byte by byte has to fit into memory so.
void check_size(const JsonView& vocab, const std::vector<Vocabulary::Entry>& entries) {
  constexpr std::size_t most = std::size_t{16} << 20;
  std::size_t bytes = 0;
  for (const Vocabulary::Entry& entry : entries) bytes += entry.spelling.size();
  if (bytes > most) vocab.refuse(fmt::format("tokens of at most {} bytes together", most), fmt::format("{}", bytes));
}

/// The model of a tokenizer.json, its vocabulary joined with the added tokens.
class ModelReader {
 public:
  ModelReader(const JsonView& model, const TokenizerSettings& settings, WordUnits units, PipelineParts& parts)
      : model_(model), settings_(settings), units_(units), parts_(parts) {}

  static constexpr const char* kinds = "BPE, Unigram, WordPiece or WordLevel";
  /// False for a kind that is not known.
  bool read() {
    // Files written before the library knew several kinds do not say.
    const std::string type = model_.text_or("type", model_.find("merges") ? "BPE" : "unknown");
    if (type == "BPE")
      pairs();
    else if (type == "Unigram")
      unigram();
    else if (type == "WordPiece" || type == "WordLevel")
      words(type == "WordLevel");
    else
      return false;
    return true;
  }

 private:
  void join(std::vector<Vocabulary::Entry> entries) {
    parts_.vocabulary = join_vocabulary(model_.where() + ".vocab", std::move(entries), parts_.added, settings_);
  }

  std::optional<std::int32_t> unknown() const {
    const auto unk = model_.find("unk_token");
    if (!unk) return std::nullopt;
    const auto id = parts_.vocabulary.find(unk->text());
    if (!id) unk->refuse("a token of the vocabulary", unk->shown());
    return id;
  }

  void pairs() {
    refuse_unsupported(model_);
    const std::vector<Vocabulary::Entry> entries = read_vocab(model_.at("vocab"));
    join(entries);
    BpeModel::Options options;
    options.byte_level = units_ == WordUnits::bytes;
    options.ignore_merges = model_.flag_or("ignore_merges", false);
    options.fuse_unk = model_.flag_or("fuse_unk", false);
    options.unk = unknown();
    options.byte_fallback = read_byte_fallback(model_, parts_.vocabulary);
    parts_.model = make_bpe(entries, read_merges(model_.at("merges"), parts_.vocabulary), options);
    parts_.description = units_ != WordUnits::characters ? "byte-level BPE"
                         : options.byte_fallback         ? "BPE with byte fallback"
                                                         : "character-level BPE";
  }

  void unigram() {
    const std::vector<UnigramModel::Entry> pieces = read_pieces(of_characters().at("vocab"));
    std::vector<Vocabulary::Entry> entries;
    entries.reserve(pieces.size());
    for (const UnigramModel::Entry& piece : pieces)
      entries.push_back({piece.piece, static_cast<std::int64_t>(entries.size())});
    check_size(model_.at("vocab"), entries);
    join(std::move(entries));
    UnigramModel::Options options;
    if (const auto unk = model_.find("unk_id")) {
      const std::int64_t id = unk->integer();
      if (id < 0 || id >= static_cast<std::int64_t>(pieces.size()))
        unk->refuse(fmt::format("the id of one of {} pieces", pieces.size()), fmt::format("{}", id));
      options.unk = static_cast<std::int32_t>(id);
    }
    options.byte_fallback = read_byte_fallback(model_, parts_.vocabulary);
    parts_.model = std::make_unique<UnigramModel>(pieces, options);
    parts_.description = options.byte_fallback ? "Unigram with byte fallback" : "Unigram";
  }

  void words(bool whole) {
    const std::vector<Vocabulary::Entry> entries = read_vocab(of_characters().at("vocab"));
    check_size(model_.at("vocab"), entries);
    join(entries);
    std::vector<std::pair<std::string, std::int32_t>> words;
    words.reserve(entries.size());
    for (const Vocabulary::Entry& entry : entries)
      words.emplace_back(entry.spelling, static_cast<std::int32_t>(entry.id));
    WordPieceModel::Options options;
    options.whole_words = whole;
    options.unk = unknown();
    options.prefix = model_.text_or("continuing_subword_prefix", "##");
    if (const auto most = model_.find("max_input_chars_per_word")) {
      if (most->integer() < 0) most->refuse("a number of characters", most->shown());
      options.most_characters = static_cast<std::size_t>(most->integer());
    }
    parts_.model = std::make_unique<WordPieceModel>(words, options);
    parts_.description = whole ? "whole words" : "WordPiece";
  }

  const JsonView& of_characters() const {
    if (units_ == WordUnits::bytes)
      model_.at("type").refuse("BPE, since the pre_tokenizer makes bytes", model_.at("type").shown());
    return model_;
  }

  const JsonView& model_;
  const TokenizerSettings& settings_;
  WordUnits units_;
  PipelineParts& parts_;
};

}  // namespace

std::shared_ptr<const Tokenizer> read_tokenizer_json(const std::filesystem::path& path,
                                                     const TokenizerSettings& settings, bool or_null) {
  return make_tokenizer(read_json_file(path), path.string(), settings, or_null);
}

std::shared_ptr<const Tokenizer> make_tokenizer(const nlohmann::json& document, const std::string& where,
                                                const TokenizerSettings& settings, bool or_null) {
  const JsonView file(document, where);
  const JsonView model = file.at("model");
  PipelineParts parts;
  parts.where = where;
  parts.added = read_added(file);
  WordUnits units = WordUnits::characters;
  if (const auto normalizer = file.find("normalizer")) read_normalizer(*normalizer, parts.normalizer);
  if (const auto steps = file.find("pre_tokenizer"))
    units = read_pre_tokenizer(*steps, settings.add_prefix_space, parts.pre_tokenizer);
  if (!ModelReader(model, settings, units, parts).read()) {
    if (or_null) return nullptr;
    throw Error(model.where() + ".type", ModelReader::kinds, model.text_or("type", "none"),
                "the text can be given as token ids (--ids) that another program made");
  }
  if (const auto decoder = file.find("decoder"))
    read_decoder(*decoder, parts.spelling);
  else
    parts.spelling.byte_level = units != WordUnits::characters;
  if (const auto steps = file.find("pre_tokenizer");
      steps && !file.find("decoder") && model.text_or("type", "") == "WordLevel" && takes_spaces_away(*steps)) {
    parts.spelling.inside_prefix = "";  // whole words: the tokenizers package puts a space between any two
    parts.spelling.strips_leading_space = true;
  }

  TextFrame frame;
  if (const auto post = file.find("post_processor")) frame = read_text_frame(*post, parts.vocabulary);
  parts.special =
      special_ids(settings, parts.vocabulary, frame.front, settings.tokenizer_class.starts_with("LlamaTokenizer"));
  parts.special.behind = frame.behind;
  return make_pipeline_tokenizer(std::move(parts));
}

}  // namespace headscope
