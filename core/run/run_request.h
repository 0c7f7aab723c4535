#pragma once
// A run as a plain value: what to run on what, and what to keep. Saves as JSON, compares, hashes: its hash is a cache
// key.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/edits/intervention.h"
#include "core/model/model.h"
#include "core/run/masked_tokens.h"
#include "core/text/tokenizer.h"
#include "core/trace/capture.h"
#include "core/trace/trace.h"

namespace headscope {

class ChatTemplate;
class JsonView;
struct TargetRules;

struct RunRequest {
  std::filesystem::path model;  ///< folder
  std::string text;             ///< used when `ids` is empty
  std::vector<std::int32_t> ids;
  /// What an encoder-decoder's encoder reads; ids where there are some, else text. Then `text` or `ids` are the target
  /// as the decoder reads it (teacher forcing), behind the token that it begins with; they may be empty.
  std::string source;
  std::vector<std::int32_t> source_ids;
  std::filesystem::path image;  ///< a picture, PNG or JPEG, in place of both, of models that read one
  std::filesystem::path sound;  ///< in place of a source, of encoders that read one (core/io/sound.h)
  /// Empty: as the tokenizer says for text, not before given ids. Texts that edits take activations from are read by
  /// the same setting as `text`.
  std::optional<bool> add_bos;
  /// `ids` are a text that was read already, BOS and all: nothing is put before them, and the settings around here are
  /// those of the texts that edits take from.
  bool ids_are_whole = false;
  bool parse_special = false;  ///< encoders always do: how else would one write [MASK]
  /// Positions of the text, with what stands around it, that an encoder is asked for.
  std::vector<MaskedPosition> masked;
  /// What to do with a text longer than the context: refuse (a clear error), keep the first, or keep the last tokens.
  enum class TooLong { refuse, keep_first, keep_last } too_long = TooLong::refuse;
  CaptureSpec capture;
  std::vector<Intervention> edits;  ///< what to change on the way; in order, so that a later one wins

  bool operator==(const RunRequest&) const = default;
};
inline constexpr NamedValue<RunRequest::TooLong> too_long_names[] = {{"refuse", RunRequest::TooLong::refuse},
                                                                     {"keep_first", RunRequest::TooLong::keep_first},
                                                                     {"keep_last", RunRequest::TooLong::keep_last}};

/// Throws Error when the text is not UTF-8, which JSON cannot hold.
std::string to_json(const RunRequest& request);
/// Absent keys take their defaults (`model` and one of `text`, `ids` are needed), unknown keys are refused.
/// Throws Error naming `where` and the key.
RunRequest run_request_from_json(const std::string& json, const std::string& where);
RunRequest run_request_from_json(const JsonView& value);
/// The same on every machine and in every build; equal requests have equal hashes.
std::uint64_t hash(const RunRequest& request);

/// A model folder opened once: weights and tokenizer. Immutable, shared.
struct LoadedModel {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;  ///< null when the folder has none: only ids can be run
  /// Null when the model continues texts and has no template for conversations, or a broken one: `chat_trouble` says
  /// so.
  std::shared_ptr<const ChatTemplate> chat = {};
  std::string chat_trouble = {};
  /// Of what an encoder-decoder's encoder reads: `tokenizer` itself in most models. Null as that may be, and in models
  /// of one stack.
  std::shared_ptr<const Tokenizer> source_tokenizer = {};
  /// Of models of speech; null elsewhere.
  std::shared_ptr<const TargetRules> target = {};

  /// An encoder-decoder's encoder, as a model of its own. REQUIRES model->encoder().
  LoadedModel encoder() const { return {{model, model->encoder()}, source_tokenizer}; }
};

/// Opens the model and, where the folder has them, its tokenizer and its chat template. Throws Error as Model::load and
/// load_tokenizer do.
LoadedModel load_model(const std::filesystem::path& folder, Backend& backend, const LoadWatch& watch = {});

/// A text of more tokens than the model can read. `counted` false: `tokens` is how many there are at least, told from
/// the length of a text that is far too long.
struct TextTooLong : Error {
  TextTooLong(const std::string& model, int tokens, int context, bool counted = true);
  int tokens, context;
  bool counted;
};

/// Tokens of the request, BOS added (and, for encoders, what stands behind a text), cut to the context as asked (BOS
/// stays when the last tokens are kept), then masked: positions count in what is left. Throws Error on empty text, ids
/// outside the vocabulary, text longer than the context with TooLong::refuse (TextTooLong, which says by how much);
/// Cancelled when `stop` is requested. `context` > 0: Ctx's, of a text that may be longer.
std::vector<Token> tokenize(const LoadedModel& loaded, const RunRequest& request, const std::stop_token& stop = {},
                            int context = 0);
/// The same however long the text is, for what reads it piece by piece or past the context.
std::vector<std::int32_t> ids_of_any_length(const LoadedModel& loaded, const RunRequest& request,
                                            const std::stop_token& stop = {});

/// What an encoder-decoder's encoder (LoadedModel::encoder()) is asked for: the source with the encoder's edits.
RunRequest encoder_request(const Model& model, const RunRequest& request);

/// The request's masked positions for another model: the same where that one reads the same tokens and is asked for
/// some, none elsewhere. Throws as tokenize().
std::vector<MaskedPosition> masks_for(const LoadedModel& other, const LoadedModel& own, const RunRequest& request);

/// The whole pipeline on the calling thread: tokenize, plan, forward, trace. The request's edits come first, then
/// `ctx.tap`, then the recorder, so what is recorded is what the pass went on with. Without an enabled edit the pass is
/// bit for bit the one that knows of no edits. Throws Error or Cancelled; also when the request names a site, layer or
/// head that this model does not have.
std::shared_ptr<const Trace> run(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx);

/// An encoder-decoder's encoder on the request's source, and what it gives the decoder.
struct Encoded {
  std::shared_ptr<const Trace> trace;
  Tensor memory;  ///< (source, d_model)
};
/// Throws as run() does. REQUIRES model->encoder().
Encoded encode(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx);

}  // namespace headscope
