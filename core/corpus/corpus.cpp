#include "core/corpus/corpus.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/io/picture.h"

namespace headscope {

namespace {

/// In the order of Trace::stacks().
template <class Results, class Each>
void each_part(Results& results, Each each) {
  if (results.encoder) each(Stack::encoder, *results.encoder);
  each(results.encoder ? Stack::decoder : Stack::only, results.statistics);
  if (results.cross) each(Stack::cross, *results.cross);
}

void check_kind(const Model& model, const CorpusSource& source) {
  static constexpr const char* reads[] = {"texts, since this model is of one stack and reads one at a time",
                                          "pairs of a source and a target, since this model is an encoder-decoder",
                                          "pictures, which this model reads"};
  static constexpr const char* hints[] = {
      "text files, or drawn stories (command line: --stories N)",
      "files with source<TAB>target in each line, or drawn pairs (command line: --pairs FILE, --translations N)",
      "PNG or JPEG files, or drawn pictures (command line: --shapes N)"};
  const auto kind = static_cast<std::size_t>(corpus_kind_of(model));
  if (corpus_kind_of(model) == source.kind) return;
  throw Error(model.config().name, reads[kind],
              (source.kind == CorpusKind::texts && source.drawn == 0 ? "texts: " : "") + describe(source), hints[kind]);
}

/// The token that stands behind a text that an encoder reads.
int tokens_around(const LoadedModel& loaded, bool bos) {
  return (bos ? 1 : 0) + (!loaded.model->config().causal && loaded.tokenizer->behind() ? 1 : 0);
}

/// Most tokens of a passage. Throws Error where the model cannot read as many as asked for.
int window_of(const LoadedModel& loaded, CorpusKind kind, int asked) {
  const ModelConfig& config = loaded.model->config();
  if (kind == CorpusKind::pictures) {
    if (asked != 0 && asked != config.vision->tokens())
      throw Error("window", fmt::format("{} tokens, which every picture is", config.vision->tokens()),
                  std::to_string(asked), "leave it away");
    return config.vision->tokens();
  }
  int context = config.context;
  if (const Model* encoder = loaded.model->encoder(); encoder && encoder->config().context > 0)
    context = context > 0 ? std::min(context, encoder->config().context) : encoder->config().context;
  const int window = asked != 0 ? asked : context > 0 ? context : 1024;
  const int least =
      kind == CorpusKind::texts ? std::max(2, 1 + tokens_around(loaded, loaded.tokenizer->adds_bos())) : 2;
  if (window < least || (context > 0 && window > context))
    throw Error("window", fmt::format("{} to {} tokens", least, context > 0 ? context : 1024), std::to_string(window));
  return window;
}

CorpusResults fresh(const LoadedModel& loaded, const std::string& name, CorpusSource source, int window, int shard,
                    int shards) {
  check_kind(*loaded.model, source);
  if (source.kind != CorpusKind::pictures && !loaded.tokenizer)
    throw Error(name, "a model with a tokenizer, which reads the texts", "one without");
  window = window_of(loaded, source.kind, window);
  if (shards < 1 || shard < 0 || shard >= shards)
    throw Error("shard", "i/n with 0 ≤ i < n", fmt::format("{}/{}", shard, shards));
  CorpusResults out;
  out.model = name;
  out.parameters = loaded.model->info().parameters;
  out.source = std::move(source);
  out.window = window;
  out.bos = out.source.kind == CorpusKind::texts && loaded.tokenizer->adds_bos();
  out.shard = shard;
  out.shards = shards;
  if (loaded.model->encoder()) out.encoder.emplace(), out.cross.emplace();
  each_part(out, [&](Stack stack, CorpusStatistics& part) {
    const ModelDims dims = loaded.model->info().part(stack).dims;
    part = CorpusStatistics(dims.layers, dims.most_heads(), window);
  });
  return out;
}

}  // namespace

const CorpusStatistics& CorpusResults::part(Stack stack) const {
  if (stack == Stack::encoder && encoder) return *encoder;
  return stack == Stack::cross && cross ? *cross : statistics;
}

std::vector<Stack> CorpusResults::stacks() const {
  std::vector<Stack> out;
  each_part(*this, [&](Stack stack, const CorpusStatistics&) { out.push_back(stack); });
  return out;
}

std::uint64_t CorpusResults::tokens() const {
  return statistics.tokens() + (encoder ? encoder->tokens() : 0);
}

bool CorpusResults::same_shape(const CorpusResults& other) const {
  if (stacks() != other.stacks()) return false;
  return std::ranges::all_of(stacks(), [&](Stack stack) { return part(stack).same_shape(other.part(stack)); });
}

std::string left_out_words(const CorpusResults& results) {
  if (results.left_out == 0) return "";
  const bool pairs = results.source.kind == CorpusKind::pairs;
  const char* const what =
      results.left_out == 1 ? (pairs ? said("pair") : said("picture")) : (pairs ? said("pairs") : said("pictures"));
  return say("{} {} left out: {}", results.left_out, what,
             pairs ? say("longer than {} tokens", results.window) : said("cannot be read"));
}

CorpusRun::CorpusRun(LoadedModel model, const std::string& name, CorpusSource source, int window, int shard, int shards)
    : CorpusRun(model, name, fresh(model, name, std::move(source), window, shard, shards)) {}

CorpusRun::CorpusRun(LoadedModel model, const std::string& name, CorpusResults results)
    : model_(std::move(model)), results_(std::move(results)) {
  const CorpusResults now = fresh(model_, name, results_.source, results_.window, results_.shard, results_.shards);
  if (results_.model != now.model || results_.parameters != now.parameters || results_.bos != now.bos ||
      !results_.same_shape(now))
    throw Error("corpus", fmt::format("results of {} with {} parameters", now.model, now.parameters),
                fmt::format("of {} with {}", results_.model, results_.parameters), "start anew, or open that model");
  reader_ = std::make_unique<CorpusReader>(results_.source);
}

bool CorpusRun::next_piece() {
  while ((piece_ = reader_->next())) {
    if (piece_->number % results_.shards != results_.shard || piece_->number < results_.next_piece) continue;
    if (results_.source.kind == CorpusKind::texts) tokens_ = model_.tokenizer->encode(piece_->text);
    token_ = 0;
    window_ = 0;
    return true;
  }
  return false;
}

/// The longest one whose own text, read alone, fits: cut at tokens that end with a character.
std::optional<CorpusRun::Passage> CorpusRun::cut_passage() {
  const int around = tokens_around(model_, results_.bos);
  const auto room = static_cast<std::size_t>(results_.window - around);
  const std::string& text = piece_->text;
  for (; token_ < tokens_.size(); ++token_) {  // past a single character of more tokens than the window holds
    const auto from = static_cast<std::size_t>(tokens_[token_].begin);
    for (std::size_t count = std::min(tokens_.size() - token_, room); count > 0; --count) {
      const auto to = static_cast<std::size_t>(tokens_[token_ + count - 1].end);
      if (to < text.size() && (static_cast<unsigned char>(text[to]) & 0xC0) == 0x80) continue;
      if (to == from) continue;
      Passage out{text.substr(from, to - from), {}, 0};
      out.tokens = model_.tokenizer->encode(out.text).size();
      if (out.tokens > room) continue;
      out.tokens += static_cast<std::size_t>(around);
      out.place.begin = static_cast<std::int64_t>(from);
      token_ += count;
      return out;
    }
  }
  return std::nullopt;
}

std::optional<CorpusRun::Passage> CorpusRun::next_passage() {
  for (;;) {
    if (!piece_ && !next_piece()) return std::nullopt;
    std::optional<Passage> out;
    if (results_.source.kind == CorpusKind::texts)
      out = cut_passage();
    else if (window_ == 0)
      out = Passage{piece_->text, {}, 0};
    if (!out) {
      piece_.reset();
      continue;
    }
    const std::int64_t begin = piece_->begin + out->place.begin;
    out->place = {piece_->number, window_++, piece_->file, begin, begin + static_cast<std::int64_t>(out->text.size())};
    return out;
  }
}

/// Whether both texts of a pair are short enough, a picture is one.
bool CorpusRun::can_be_run(const RunRequest& request) const {
  const auto fits = [&](const LoadedModel& model, const RunRequest& one) {
    return tokenize(model, one).size() <= static_cast<std::size_t>(results_.window);
  };
  try {
    if (results_.source.kind == CorpusKind::pictures) (void)read_picture(request.image);
    if (results_.source.kind == CorpusKind::pairs)
      return fits(model_, request) && fits(model_.encoder(), encoder_request(*model_.model, request));
    return true;
  } catch (const TextTooLong&) {
    return false;
  } catch (const Error&) {
    if (results_.source.kind == CorpusKind::pictures) return false;
    throw;
  }
}

bool CorpusRun::step(const Ctx& ctx) {
  if (results_.finished) return false;
  while (!passage_) {
    passage_ = next_passage();
    if (!passage_) {
      results_.finished = true;
      results_.skipped = reader_->skipped();
      results_.next_piece = reader_->pieces();
      results_.next_window = 0;
      return false;
    }
    if (passage_->place.piece == results_.next_piece && passage_->place.window < results_.next_window)
      passage_.reset();  // done before
  }
  const PassagePlace place = passage_->place;
  const bool text = results_.source.kind == CorpusKind::texts;
  RunRequest request = passage_request(results_.source.kind, passage_->text);
  if (text) request.add_bos = results_.bos;
  request.capture.all_logits = false;
  if (!can_be_run(request)) {
    ++results_.left_out;
  } else if (!text || passage_->tokens >= 2) {
    const auto trace = run(model_, request, ctx);  // throws before anything is counted
    each_part(results_,
              [&](Stack stack, CorpusStatistics& part) { part.add(*trace->part(stack), place, ctx.backend.pool()); });
  }
  results_.next_piece = place.piece;
  results_.next_window = place.window + 1;
  passage_.reset();
  return true;
}

CorpusResults merge(const std::vector<CorpusResults>& parts, const std::vector<std::string>& names) {
  if (parts.empty()) throw Error("merge", "at least one part", "none");
  const auto name = [&](std::size_t i) { return i < names.size() ? names[i] : fmt::format("part {}", i); };
  std::vector<int> order(static_cast<std::size_t>(parts.front().shards), -1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const CorpusResults &part = parts[i], &first = parts.front();
    if (part.model != first.model || part.parameters != first.parameters || part.source != first.source ||
        part.window != first.window || part.bos != first.bos || !part.same_shape(first) || part.shards != first.shards)
      throw Error(
          name(i), "a shard of the same corpus, model and window as " + name(0),
          fmt::format("{} on {}, {} tokens, {} shards", part.model, describe(part.source), part.window, part.shards));
    if (!part.finished)
      throw Error(name(i), "a finished shard", fmt::format("one that stopped at piece {}", part.next_piece),
                  "--resume goes on with it");
    int& place = nth(order, part.shard);
    if (place >= 0)
      throw Error(name(i), "every shard once",
                  fmt::format("shard {}/{} as in {}", part.shard, part.shards, name(static_cast<std::size_t>(place))));
    place = static_cast<int>(i);
  }
  for (std::size_t shard = 0; shard < order.size(); ++shard)
    if (order[shard] < 0)
      throw Error("merge", fmt::format("all {} shards", order.size()),
                  fmt::format("none of {}/{}", shard, order.size()));
  CorpusResults out = nth(parts, order.front());
  for (std::size_t shard = 1; shard < order.size(); ++shard) {
    const CorpusResults& part = nth(parts, order[shard]);
    each_part(out, [&](Stack stack, CorpusStatistics& own) { own.merge(part.part(stack)); });
    out.left_out += part.left_out;
  }
  out.shard = 0;
  out.shards = 1;
  return out;
}

}  // namespace headscope
