#pragma once
// A SentencePiece model (sentencepiece_model.proto) put together from pieces and scores, for files that hold those
// alone: then the library reads text with them as with any tokenizer.model.

#include <cstdint>
#include <string>
#include <vector>

namespace headscope {

struct SentencePieceParts {
  /// The numbers of ModelProto.SentencePiece.Type; GGUF counts its kinds of tokens the same.
  enum Type : std::int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  struct Piece {
    std::string text;  ///< "▁" for a space
    float score = 0;   ///< of two merges the one whose piece has the higher score goes first
    Type type = normal;
  };
  std::vector<Piece> pieces;  ///< by id
  bool unigram = false;       ///< the likeliest pieces (Kudo 2018) instead of merges
  bool space_in_front = true, joins_spaces = false;
  int bos = -1, eos = -1;
};

/// The bytes of such a model.
std::string serialized(const SentencePieceParts& parts);

}  // namespace headscope
