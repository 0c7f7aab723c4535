#include "core/io/model_location.h"
#include "core/text/gguf_tokenizer.h"
#include "core/text/pipeline_tokenizer.h"
#include "core/text/sentencepiece_tokenizer.h"
#include "core/text/source_tokenizer.h"
#include "core/text/tokenizer.h"
#include "core/text/tokenizer_settings.h"

namespace headscope {

// Where a folder holds several forms, tokenizer.json wins: it is the form that the transformers library runs, and the
// only one that names added tokens. For Llama models it and tokenizer.model agree on every string of the reference set,
// special tokens included. A tokenizer.json of a kind that is not known gives way to a tokenizer.model beside it.
namespace {
/// Marian's: pieces of each side's own, and a vocabulary for both or one for each.
bool marian(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const char* name : {"source.spm", "target.spm", "vocab.json"})
    if (!std::filesystem::exists(folder / name, ignored)) return false;
  return true;
}
}  // namespace

std::shared_ptr<const Tokenizer> load_source_tokenizer(const std::filesystem::path& path) {
  const ModelLocation model = locate_model(path);
  if (!marian(model.folder)) return nullptr;
  return read_marian(model.folder / "source.spm", model.folder / "vocab.json", read_tokenizer_settings(model.folder));
}

std::shared_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  const ModelLocation model = locate_model(path);
  if (model.format == ModelLocation::Format::gguf)
    if (auto own = read_gguf_tokenizer(model.weights)) return own;
  const std::filesystem::path& folder = model.folder;
  const auto has = [&](const char* name) {
    std::error_code ignored;
    return std::filesystem::exists(folder / name, ignored);
  };
  const bool json = has("tokenizer.json"), pieces = has("tokenizer.model"), vocab = has("vocab.json"),
             lines = has("vocab.txt"), t5 = has("spiece.model"), deberta = has("spm.model");
  if (model.format == ModelLocation::Format::llama2c && has("tokenizer.bin"))
    return read_llama2c_tokenizer(folder / "tokenizer.bin");
  if (!json && !pieces && !vocab && !lines && !t5 && !deberta) return nullptr;
  const TokenizerSettings settings = read_tokenizer_settings(folder);
  if (json)
    if (auto tokenizer = read_tokenizer_json(folder / "tokenizer.json", settings, pieces || t5 || deberta))
      return tokenizer;
  if (marian(folder))
    return read_marian(folder / "target.spm", folder / (has("target_vocab.json") ? "target_vocab.json" : "vocab.json"),
                       settings);
  if (t5 && settings.tokenizer_class == "GPTSw3Tokenizer")
    return read_gpt_sw3_sentencepiece(folder / "spiece.model", settings);
  if (t5) return read_t5_sentencepiece(folder / "spiece.model", settings);
  if (deberta) return read_deberta_sentencepiece(folder / "spm.model", settings);
  if (pieces) return read_sentencepiece(folder / "tokenizer.model", settings);
  return vocab ? read_vocab_and_merges(settings) : read_vocab_txt(settings);
}

}  // namespace headscope
