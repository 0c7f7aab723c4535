// llama2.c's tokenizer.bin (tokenizer.py's export): the longest token's length, then for each id a score, a length, and
// the token with its spaces as spaces. What kind a token is, is known by its place: 0 unknown, 1 and 2 begin and end a
// text, then 256 bytes where they are spelled so.

#include <fmt/format.h>

#include <cstring>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/base/utf8.h"
#include "core/text/gguf_tokenizer.h"
#include "core/text/sentencepiece_model.h"
#include "core/text/sentencepiece_tokenizer.h"
#include "core/text/vocabulary.h"

namespace headscope {

namespace {
constexpr std::size_t largest_file = std::size_t{64} << 20;
constexpr std::string_view space_mark = "▁";
}  // namespace

std::shared_ptr<const Tokenizer> read_llama2c_tokenizer(const std::filesystem::path& path) {
  const std::string bytes = read_file(path, largest_file);
  const std::string where = path.string();
  std::size_t at = 0;
  const auto take = [&](std::size_t size) {
    if (size > bytes.size() - at)
      throw Error(where, fmt::format("{} bytes more at byte {}", size, at), fmt::format("{}", bytes.size() - at),
                  "is it a tokenizer.bin of llama2.c, and was it copied whole?");
    at += size;
    return std::string_view(bytes).substr(at - size, size);
  };
  const auto number = [&]<class T>(T value) {
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  };
  number(std::int32_t{});  // the longest token's length
  SentencePieceParts parts;
  parts.bos = 1;
  parts.eos = 2;
  while (at < bytes.size()) {
    const std::size_t id = parts.pieces.size();
    const float score = number(0.0f);
    const auto length = number(std::int32_t{});
    if (length < 0)
      throw Error(fmt::format("{}: token {}", where, id), "a length of at least 0", fmt::format("{}", length));
    SentencePieceParts::Piece piece{std::string(take(static_cast<std::size_t>(length))), score};
    if (const auto bad = first_invalid_utf8(piece.text))
      throw Error(fmt::format("{}: token {}", where, id), "valid UTF-8",
                  fmt::format("byte 0x{:02X} at offset {}", static_cast<unsigned char>(piece.text[*bad]), *bad));
    if (id == 0)
      piece = {"<unk>", score, SentencePieceParts::unknown};
    else if (id <= 2)
      piece = {id == 1 ? "<s>" : "</s>", score, SentencePieceParts::control};
    else if (byte_token(piece.text))
      piece.type = SentencePieceParts::byte;
    for (std::size_t space = 0; (space = piece.text.find(' ', space)) != std::string::npos;)
      piece.text.replace(space, 1, space_mark);
    parts.pieces.push_back(std::move(piece));
  }
  if (parts.pieces.size() < 4) throw Error(where, "tokens", fmt::format("{}", parts.pieces.size()));
  TokenizerSettings settings;
  settings.folder = path.parent_path();
  return make_sentencepiece(serialized(parts), where, settings);
}

}  // namespace headscope
