// The tokens that a request reads.

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/edits/edit_scene.h"
#include "core/io/sound.h"
#include "core/run/run_request.h"
#include "core/run/target_rules.h"

namespace headscope {

namespace {
// Of a text whose positions an edit extends past the trained context: attention costs its square.
constexpr int longest_edited_text = 65'536;

std::vector<Token> tokens_of_ids(const LoadedModel& loaded, const std::vector<std::int32_t>& ids) {
  std::vector<Token> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) {
    if (loaded.tokenizer && id >= 0 && id < loaded.tokenizer->vocab_size()) {
      tokens.push_back(loaded.tokenizer->token(id));
    } else {
      tokens.push_back({id, "", std::to_string(id), -1, -1});
    }
  }
  return tokens;
}

/// `most`: of the tokens, where more would be refused.
std::vector<Token> tokens_of_text(const LoadedModel& loaded, const RunRequest& request, const std::string& model,
                                  std::size_t most, const std::stop_token& stop) {
  if (request.text.empty() && loaded.model->encoder()) return {};  // the target is its first token alone
  if (!loaded.tokenizer)
    throw Error(
        model,
        "a tokenizer (tokenizer.json, vocab.json + merges.txt, vocab.txt, or tokenizer.model) in the model's folder",
        "none", "token ids can be given instead of text");
  if (request.text.empty()) throw Error("text", "at least one character", "an empty text");
  return loaded.tokenizer->encode(
      request.text, {request.parse_special || !loaded.model->config().causal || loaded.target, most, stop});
}

bool begins_with_special(const LoadedModel& loaded, const std::vector<Token>& tokens) {
  if (tokens.empty() || !loaded.tokenizer) return false;
  const std::int32_t twice[] = {tokens.front().id, tokens.front().id};  // of a space alone the first is taken away
  return loaded.tokenizer->decode(twice).empty();
}

/// Whether a text begins with the code of its language where a tokenizer puts that of a usual one in front, and no BOS
/// (mBART-50, NLLB): a special token that was written there.
bool names_its_language(const LoadedModel& loaded, std::int32_t front, const std::vector<Token>& tokens) {
  const ModelConfig& config = loaded.model->config();
  if (config.stack == Stack::only || !config.bos || front == *config.bos) return false;
  return begins_with_special(loaded, tokens);
}

/// Puts BOS in front when the request or the tokenizer asks for it; says whether it did.
bool add_bos(const LoadedModel& loaded, const RunRequest& request, const std::string& model,
             std::vector<Token>& tokens) {
  if (request.ids_are_whole && !request.ids.empty()) return false;
  const bool usual = request.ids.empty() && loaded.tokenizer && loaded.tokenizer->adds_bos() && !loaded.target;
  if (!request.add_bos.value_or(usual)) return false;
  const auto bos = loaded.tokenizer ? loaded.tokenizer->bos() : loaded.model->config().bos;
  if (!bos) {
    if (!request.add_bos) return false;
    throw Error(model, "a beginning-of-sequence token, which the run asks for", "none in the tokenizer");
  }
  if (!request.add_bos && names_its_language(loaded, *bos, tokens)) return true;
  tokens.insert(tokens.begin(), tokens_of_ids(loaded, {*bos}).front());
  return true;
}

/// Puts in front what an encoder-decoder's targets begin with: a token, and of a model of speech language and task,
/// where the text does not begin with its own; says how many that are.
int add_start(const LoadedModel& loaded, const RunRequest& request, std::vector<Token>& tokens) {
  if (!loaded.model->encoder() || (request.ids_are_whole && !request.ids.empty())) return 0;
  std::vector<std::int32_t> front{loaded.model->config().decoder_start};
  if (loaded.target && !begins_with_special(loaded, tokens))
    front.insert(front.end(), loaded.target->prompt.begin(), loaded.target->prompt.end());
  const std::vector<Token> start = tokens_of_ids(loaded, front);
  tokens.insert(tokens.begin(), start.begin(), start.end());
  return static_cast<int>(start.size());
}

/// Puts behind a text what an encoder was trained to find there; says how many tokens that are.
int add_behind(const LoadedModel& loaded, const RunRequest& request, std::vector<Token>& tokens) {
  const auto behind = loaded.tokenizer ? loaded.tokenizer->behind() : std::nullopt;
  // Where nothing is put before a text it stays as it is behind, too; ids are whole unless the request says otherwise.
  const bool whole = (request.ids_are_whole && !request.ids.empty()) || !request.add_bos.value_or(request.ids.empty());
  if (loaded.model->config().causal || whole || !behind) return 0;
  tokens.push_back(tokens_of_ids(loaded, {*behind}).front());
  return 1;
}

/// Tells the texts apart that separators part, as they were written: before anything is masked or cut away.
void count_segments(const LoadedModel& loaded, std::vector<Token>& tokens) {
  const ModelConfig& config = loaded.model->config();
  if (config.causal || !loaded.tokenizer) return;
  const auto separator = loaded.tokenizer->behind();
  int segment = 0;
  for (Token& token : tokens) {
    token.segment = std::min(segment, std::max(config.segments - 1, 0));
    if (token.id == separator) ++segment;
  }
}

/// Masks what is to be masked, and says what is masked already.
void mark(const LoadedModel& loaded, const RunRequest& request, std::vector<Token>& tokens) {
  const ModelConfig& config = loaded.model->config();
  const auto mask = loaded.tokenizer ? loaded.tokenizer->mask() : std::nullopt;
  if (!request.masked.empty() && (config.causal || !mask))
    throw Error(config.name, "a model that is asked for masked tokens, with a token for them",
                config.causal ? "a decoder, which says what comes next" : "a tokenizer without one");
  const int n = static_cast<int>(tokens.size());
  for (const MaskedPosition& each : request.masked) {
    const int at = each.position < 0 ? n + each.position : each.position;
    if (at < 0 || at >= n)
      throw Error("masked position", fmt::format("a position from 0 to {}", n - 1), std::to_string(each.position));
    if (const std::int32_t shown = each.shown.value_or(0); shown < 0 || shown >= config.dims.vocab)
      throw Error("masked position", fmt::format("a token from 0 to {}", config.dims.vocab - 1), std::to_string(shown));
    Token& token = nth(tokens, at);
    if (token.masked) continue;
    const std::int32_t original = token.id;
    const Token written = tokens_of_ids(loaded, {each.shown.value_or(*mask)}).front();
    token.id = written.id;
    token.bytes = written.bytes;
    token.label = written.label;
    token.masked = true;
    if (original != mask) token.original = original;  // where [MASK] was written, nobody knows what stood there
  }
  if (config.causal) return;
  for (Token& token : tokens) token.masked |= token.id == mask;
}

/// CLS, registers, and patches by row and column. No two are the same token, so that none repeats another.
std::vector<Token> tokens_of_picture(const ModelConfig& config, const RunRequest& request) {
  const VisionConfig& v = *config.vision;
  if (request.image.empty())
    throw Error(config.name, "a picture (PNG or JPEG), which this model reads",
                request.ids.empty() ? "a text" : "numbers of tokens", "command line: --image FILE");
  if (!request.masked.empty())
    throw Error("masked position", "a model that is asked for masked tokens", "one that tells what a picture shows",
                "the edit \"hide patches\" takes some away");
  for (std::size_t i = 0; i < request.ids.size(); ++i)
    if (request.ids.size() != static_cast<std::size_t>(v.tokens()) || request.ids[i] != static_cast<std::int32_t>(i))
      throw Error(config.name, "a picture, whose patches stand in the order of their grid", "other tokens",
                  "this model reads no text that could be put together from them");
  const int leading = v.leading - v.registers;
  const bool alike = leading > 2 || (leading == 2 && v.stored_side > 0);  // of two in a size of their own one distils
  const auto learned = [&](int at) {
    return alike ? fmt::format("[CLS{}]", at) : std::string(at == 0 ? "[CLS]" : "[DIST]");
  };
  std::vector<Token> tokens;
  for (std::int32_t id = 0; id < v.tokens(); ++id) {
    const int patch = id - v.leading;
    const int of_register = id - leading;
    const std::string label = patch >= 0         ? fmt::format("r{}c{}", patch / v.columns(), patch % v.columns())
                              : of_register >= 0 ? fmt::format("[REG{}]", of_register)
                                                 : learned(id);
    tokens.push_back({id, "", label});
  }
  return tokens;
}

/// Stretches of a sound, by when they begin. No two are the same token.
std::vector<Token> tokens_of_sound(const ModelConfig& config, const RunRequest& request) {
  const SoundConfig& s = *config.sound;
  if (request.sound.empty())
    throw Error(config.name, "a sound, which its encoder reads", request.text.empty() ? "none" : "a text",
                "command line: --sound FILE");
  const double from = sound_place(request.sound).from;
  std::vector<Token> tokens;
  for (std::int32_t row = 0; row < s.rows; ++row)
    tokens.push_back({row, "", fmt::format("{:.2f} s", from + row * s.row_seconds())});
  return tokens;
}

/// How many tokens the run may have: the trained context, or more where an edit says how positions go on.
int context_of(const LoadedModel& loaded, const RunRequest& request) {
  const ModelConfig& config = loaded.model->config();
  return reads_past_context(request.edits, config) ? std::max(config.context, longest_edited_text) : config.context;
}

/// `front`: how many of the first tokens stay, whatever is cut; `behind`: of the last.
void cut(std::vector<Token>& tokens, const RunRequest& request, const ModelConfig& config, int limit, int front,
         int behind) {
  const auto context = static_cast<std::size_t>(std::max(limit, 0));
  if (context == 0 || tokens.size() <= context) return;
  // What was read already is as long as it is; `too_long` is for other texts.
  switch (request.ids_are_whole ? RunRequest::TooLong::refuse : request.too_long) {
    case RunRequest::TooLong::refuse:
      throw TextTooLong(config.name, static_cast<int>(tokens.size()), limit);
    case RunRequest::TooLong::keep_first:
      tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(context - behind), tokens.end() - behind);
      return;
    case RunRequest::TooLong::keep_last:
      const auto first = tokens.begin() + std::min(front, static_cast<int>(context) - 1);
      tokens.erase(first, first + static_cast<std::ptrdiff_t>(tokens.size() - context));
      return;
  }
}

}  // namespace

TextTooLong::TextTooLong(const std::string& model, int count, int limit, bool exact)
    : Error("text", fmt::format("at most {} tokens, the context of {}", limit, model),
            fmt::format("{0}{1} tokens, {0}{2} too many", exact ? "" : "at least ", count, count - limit),
            fmt::format("cut the text, or keep its first or last {} tokens (command line: --cut first or --cut last)",
                        limit)),
      tokens(count),
      context(limit),
      counted(exact) {}

namespace {
/// `context` tokens at most; 0 = as many as there are.
std::vector<Token> tokenize_within(const LoadedModel& loaded, const RunRequest& request, int context,
                                   const std::stop_token& stop) {
  const ModelConfig& config = loaded.model->config();
  if (config.vision) return tokens_of_picture(config, request);
  if (config.sound) return tokens_of_sound(config, request);
  if (!request.image.empty())
    throw Error(config.name, "a text, which this model reads", "a picture",
                "vision transformers (ViT, DeiT, CLIP) read them");
  const bool refuses = context > 0 && request.too_long == RunRequest::TooLong::refuse;
  std::vector<Token> tokens;
  try {
    tokens = request.ids.empty()
                 ? tokens_of_text(loaded, request, config.name,
                                  refuses ? static_cast<std::size_t>(context) : Tokenizer::unlimited, stop)
                 : tokens_of_ids(loaded, request.ids);
  } catch (const TooManyTokens& refused) {
    throw TextTooLong(config.name, static_cast<int>(refused.at_least), context, false);
  }
  const bool bare = tokens.empty() && loaded.model->encoder();
  int front = !bare && add_bos(loaded, request, config.name, tokens) ? 1 : 0;
  front += add_start(loaded, request, tokens);
  const int behind = add_behind(loaded, request, tokens);
  if (tokens.empty()) throw Error("text", "at least one token", "none");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].id < 0 || tokens[i].id >= config.dims.vocab)
      throw Error(fmt::format("token {}", i), fmt::format("ids from 0 to {} ({})", config.dims.vocab - 1, config.name),
                  std::to_string(tokens[i].id));
  }
  count_segments(loaded, tokens);
  cut(tokens, request, config, context, front, context > behind ? behind : 0);
  mark(loaded, request, tokens);
  return tokens;
}
}  // namespace

std::vector<Token> tokenize(const LoadedModel& loaded, const RunRequest& request, const std::stop_token& stop,
                            int context) {
  return tokenize_within(loaded, request, std::max(context_of(loaded, request), context), stop);
}

std::vector<std::int32_t> ids_of_any_length(const LoadedModel& loaded, const RunRequest& request,
                                            const std::stop_token& stop) {
  std::vector<std::int32_t> ids;
  for (const Token& token : tokenize_within(loaded, request, 0, stop)) ids.push_back(token.id);
  return ids;
}

std::vector<MaskedPosition> masks_for(const LoadedModel& other, const LoadedModel& own, const RunRequest& request) {
  if (request.masked.empty() || other.model->config().objective() != Objective::masked_token) return {};
  RunRequest plain = request;
  plain.masked.clear();
  const bool same = std::ranges::equal(tokenize(own, plain), tokenize(other, plain), {}, &Token::id, &Token::id);
  return same ? request.masked : std::vector<MaskedPosition>();
}

}  // namespace headscope
