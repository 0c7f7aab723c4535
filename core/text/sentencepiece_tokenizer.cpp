#include "core/text/sentencepiece_tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <new>
#include <set>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/io/json_view.h"
#include "core/text/normalizer.h"
#include "core/text/table_tokenizer.h"

namespace headscope {

namespace {

using sentencepiece::ImmutableSentencePieceText;
using sentencepiece::SentencePieceProcessor;

constexpr std::size_t kLargestModel = std::size_t{256} << 20;
// The library reads a text to its end once it began, about a megabyte in a second.
constexpr std::size_t kLongestPart = std::size_t{1} << 20;
constexpr std::string_view kSpaceMark = "▁";

/// Calls into the library, whose exceptions (of lengths that a broken file states, for one) become Errors at `where`.
template <class Call>
auto guarded(const std::string& where, const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& failure) {
    throw Error(where, "a model that SentencePiece can use", failure.what(), "the file may be damaged; fetch it again");
  }
}

bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Letters and digits of ASCII that no token holds more of; 0 = there is no such number, since the vocabulary lacks
/// one of them and makes one token of a whole run that it does not know.
std::size_t longest_token(const SentencePieceProcessor& processor) {
  std::size_t longest = 1;
  std::set<char> known;
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    const std::string& piece = processor.IdToPiece(id);
    longest = std::max(longest, piece.size());
    if (piece.size() == 1 && !processor.IsUnknown(id)) known.insert(piece.front());
  }
  for (int c = 0; c < 128; ++c)
    if (letter_or_digit(static_cast<char>(c)) && !known.contains(static_cast<char>(c))) return 0;
  return longest;
}

/// What is done to a text before the library sees it.
using Preparation = AlignedText (*)(AlignedText text, const std::stop_token& stop);

class SentencePieceTokenizer final : public TableTokenizer {
 public:
  /// `ids`: what pieces are numbered by in place of the model's own numbers, `unknown` where they have none.
  SentencePieceTokenizer(Table table, std::unique_ptr<const SentencePieceProcessor> processor, std::string where,
                         Preparation prepare = nullptr, std::optional<Vocabulary> ids = {}, std::int32_t unknown = 0)
      : TableTokenizer(std::move(table)),
        processor_(std::move(processor)),
        where_(std::move(where)),
        prepare_(prepare),
        ids_(std::move(ids)),
        unknown_(unknown),
        longest_(ids_ || prepare_ ? 0 : longest_token(*processor_)) {}

 protected:
  void encode_part(std::string_view text, std::int32_t base, const Options& options,
                   std::vector<Token>& out) const override {
    if (options.stop.stop_requested()) throw Cancelled();
    if (longest_ > 0)  // the library's normaliser may drop or shorten anything but these
      check_length(static_cast<std::size_t>(std::ranges::count_if(text, letter_or_digit)), longest_, out.size(),
                   options);
    if (text.size() > kLongestPart)
      throw Error(
          "text",
          fmt::format("at most {} bytes in a row for SentencePiece, whose reading cannot be stopped", kLongestPart),
          fmt::format("{}, too long", text.size()), "cut it into several texts");
    const AlignedText prepared = prepare_ ? prepare_(AlignedText::of(text, base), options.stop) : AlignedText();
    if (prepare_) text = prepared.bytes;
    const auto place = [&](std::int32_t at) {
      return prepare_ ? prepared.origin[static_cast<std::size_t>(at)] : base + at;
    };
    ImmutableSentencePieceText encoded;
    guarded(where_, [&] {
      const auto status = processor_->Encode(absl::string_view(text.data(), text.size()), encoded.mutable_proto());
      if (!status.ok()) throw Error("text", "text that SentencePiece can encode", status.ToString());
    });
    const auto pieces = encoded.pieces();
    for (std::size_t i = 0; i < pieces.size();) {
      // A character without a token becomes byte tokens, of which the library gives the last one all of the character
      // and the others nothing. Here each byte token has its own byte.
      std::size_t last = i;
      while (last + 1 < pieces.size() && is_byte(pieces[last]) && is_byte(pieces[last + 1]) &&
             pieces[last].begin() == pieces[last].end())
        ++last;
      const auto end = static_cast<std::int32_t>(pieces[last].end());
      for (auto at = static_cast<std::int32_t>(pieces[i].begin()); i <= last; ++i) {
        const std::int32_t next = i == last ? end : std::min(at + 1, end);
        out.push_back(spanned(id_of(pieces[i]), place(at), place(next)));
        at = next;
      }
    }
  }

 private:
  template <class Piece>
  bool is_byte(const Piece& piece) const {
    return processor_->IsByte(static_cast<int>(piece.id()));
  }

  template <class Piece>
  std::int32_t id_of(const Piece& piece) const {
    return ids_ ? ids_->find(std::string(piece.piece())).value_or(unknown_) : static_cast<std::int32_t>(piece.id());
  }

  std::unique_ptr<const SentencePieceProcessor> processor_;
  std::string where_;
  Preparation prepare_;
  std::optional<Vocabulary> ids_;
  std::int32_t unknown_;
  std::size_t longest_;  // see longest_token()
};

std::string bytes_of(const std::string& piece) {
  if (const auto byte = byte_token(piece)) return std::string(1, static_cast<char>(*byte));
  return replace_all(piece, kSpaceMark, " ");
}

bool puts_space_in_front(const SentencePieceProcessor& processor) {
  ImmutableSentencePieceText encoded;
  return processor.Encode("a", encoded.mutable_proto()).ok() && encoded.pieces_size() > 0 &&
         std::string_view(encoded.pieces(0).piece()).starts_with(kSpaceMark);
}

}  // namespace

std::shared_ptr<const Tokenizer> read_sentencepiece(const std::filesystem::path& path,
                                                    const TokenizerSettings& settings) {
  return make_sentencepiece(read_file(path, kLargestModel), path.string(), settings);
}

namespace {
std::unique_ptr<SentencePieceProcessor> open_model(const std::string& file, const std::string& where) {
  auto processor = std::make_unique<SentencePieceProcessor>();
  const auto status =
      guarded(where, [&] { return processor->LoadFromSerializedProto(absl::string_view(file.data(), file.size())); });
  if (!status.ok())
    throw Error(where, "a SentencePiece model",
                fmt::format("{} bytes that are none: {}", file.size(), status.ToString()),
                "the file may be cut off or a Git LFS pointer; fetch it again");
  return processor;
}

std::shared_ptr<const Tokenizer> make(const std::string& file, const std::string& where, const TokenizerSettings& given,
                                      bool eos_behind, Preparation prepare = nullptr) {
  auto processor = open_model(file, where);
  std::vector<Vocabulary::Entry> entries;
  TableTokenizer::Table table;
  table.added = given.added;
  for (int id = 0; id < processor->GetPieceSize(); ++id) {
    entries.push_back({processor->IdToPiece(id), id});
    if (processor->IsControl(id) || processor->IsUnknown(id))
      table.added.push_back({.content = processor->IdToPiece(id), .id = id, .special = true});
  }
  TokenizerSettings settings = given;
  const auto name_of = [&](int id) { return id < 0 ? std::nullopt : std::optional(processor->IdToPiece(id)); };
  if (!settings.bos && !settings.config_bos) settings.bos = name_of(processor->bos_id());
  if (!settings.eos && !settings.config_eos) settings.eos = name_of(processor->eos_id());
  const Vocabulary vocabulary = join_vocabulary(where, std::move(entries), table.added, settings);
  const SpecialIds special = special_ids(settings, vocabulary, std::nullopt, true);

  table.entries = table_entries(vocabulary, table.added, bytes_of);
  for (AddedToken& token : table.added) token.normalized = false;  // SentencePiece's normaliser sees only what is left
  table.bos = special.bos;
  table.eos = special.eos;
  table.mask = special.mask;
  table.adds_bos = special.adds_bos;
  table.strips_leading_space = guarded(where, [&] { return puts_space_in_front(*processor); });
  table.description = "SentencePiece";
  if (eos_behind) table.behind = special.eos;
  return std::make_shared<SentencePieceTokenizer>(std::move(table), std::move(processor), where, prepare);
}

/// ">>fra<<"
bool names_language(std::string_view token) {
  return token.size() > 4 && token.starts_with(">>") && token.ends_with("<<");
}
}  // namespace

std::shared_ptr<const Tokenizer> make_sentencepiece(const std::string& file, const std::string& where,
                                                    const TokenizerSettings& settings) {
  return make(file, where, settings, false);
}

std::shared_ptr<const Tokenizer> read_t5_sentencepiece(const std::filesystem::path& path, TokenizerSettings settings) {
  constexpr int marks = 100;
  const std::string file = read_file(path, kLargestModel);
  if (settings.added.empty()) {
    const int pieces = open_model(file, path.string())->GetPieceSize();
    for (int i = 0; i < marks; ++i)
      settings.added.push_back(
          {.content = fmt::format("<extra_id_{}>", i), .id = pieces + marks - 1 - i, .special = true});
  }
  return make(file, path.string(), settings, true);
}

namespace {
/// As GPT-SW3's makers trained it (Ekgren et al., GPT-SW3: An Autoregressive Language Model for the Scandinavian
/// Languages, 2023): without characters that do not print, all kinds of spaces one, composed (NFC).
AlignedText scandinavian(AlignedText text, const std::stop_token& stop) {
  const auto prints = [](std::int32_t c) {
    return !(c < 9 || (c > 10 && c < 32) || (c >= 127 && c <= 160) || c == 0xAD || c == 0x200B);
  };
  constexpr std::int32_t spaces[] = {0x2002, 0x2003, 0x2005, 0x2008, 0x2009, 0x200A, 0x202F, 0x3000, 0xFFFC};
  AlignedTextWriter out(text);
  for (std::size_t at = 0; at < text.bytes.size();) {
    const CodePoint here = code_point_at(text.bytes, at);
    const std::size_t end = at + static_cast<std::size_t>(here.length);
    if (std::ranges::find(spaces, here.value) != std::end(spaces))
      out.replace(at, end, " ");
    else if (prints(here.value))
      out.copy(at, end);
    at = end;
  }
  return normalize({NormalFormStep{NormalForm::nfc}}, out.finish(), stop);
}
}  // namespace

std::shared_ptr<const Tokenizer> read_gpt_sw3_sentencepiece(const std::filesystem::path& path,
                                                            TokenizerSettings settings) {
  settings.add_bos = settings.add_bos.value_or(false);
  return make(read_file(path, kLargestModel), path.string(), settings, false, &scandinavian);
}

std::shared_ptr<const Tokenizer> read_deberta_sentencepiece(const std::filesystem::path& path,
                                                            TokenizerSettings settings) {
  std::error_code ignored;
  if (const auto config = settings.folder / "tokenizer_config.json"; std::filesystem::exists(config, ignored)) {
    const nlohmann::json document = read_json_file(config);
    if (JsonView(document, config.string()).flag_or("do_lower_case", false))
      throw Error(config.string() + ": do_lower_case", "false", "true",
                  "save_pretrained of transformers writes a tokenizer.json, which is read");
  }
  const std::string file = read_file(path, kLargestModel);
  const auto usual = [](std::optional<std::string>& name, const char* otherwise) { name = name.value_or(otherwise); };
  usual(settings.bos, "[CLS]"), usual(settings.eos, "[SEP]"), usual(settings.mask, "[MASK]");
  settings.add_bos = true;
  const auto processor = open_model(file, path.string());
  const auto known = [&](const std::string& name) {
    return processor->PieceToId(name) != processor->unk_id() ||
           std::ranges::find(settings.added, name, &AddedToken::content) != settings.added.end();
  };
  if (!known(*settings.mask))
    settings.added.push_back({.content = *settings.mask, .id = processor->GetPieceSize(), .special = true});
  return make(file, path.string(), settings, true);
}

std::shared_ptr<const Tokenizer> read_marian(const std::filesystem::path& pieces, const std::filesystem::path& vocab,
                                             const TokenizerSettings& given) {
  const std::string where = vocab.string();
  auto processor = open_model(read_file(pieces, kLargestModel), pieces.string());
  TokenizerSettings settings = given;
  const auto usual = [&](std::optional<std::string>& name, const char* otherwise) {
    if (!name) settings.special.emplace_back(*(name = otherwise));
  };
  usual(settings.eos, "</s>"), usual(settings.unk, "<unk>");
  settings.special.emplace_back("<pad>");
  TableTokenizer::Table table;
  table.added = settings.added;
  std::vector<Vocabulary::Entry> entries = read_vocab_json(vocab);
  for (const Vocabulary::Entry& entry : entries)
    if (names_language(entry.spelling)) settings.special.push_back(entry.spelling);
  Vocabulary vocabulary = join_vocabulary(where, std::move(entries), table.added, settings);
  const auto needed = [&](const std::string& name) {
    if (const auto id = vocabulary.find(name)) return *id;
    throw Error(where, "the token " + name, "none of that name");
  };
  const std::int32_t unknown = needed(*settings.unk);
  table.entries = table_entries(vocabulary, table.added, bytes_of);
  for (AddedToken& token : table.added) token.normalized = false;
  table.eos = table.behind = needed(*settings.eos);
  table.strips_leading_space = guarded(where, [&] { return puts_space_in_front(*processor); });
  table.description = "SentencePiece with the numbers of vocab.json";
  return std::make_shared<SentencePieceTokenizer>(std::move(table), std::move(processor), pieces.string(), nullptr,
                                                  std::move(vocabulary), unknown);
}

}  // namespace headscope
