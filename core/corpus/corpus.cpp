#include "core/corpus/corpus.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/nth.h"

namespace headscope {

namespace {

CorpusResults fresh(const LoadedModel& loaded, const std::string& name, CorpusSource source, int window, int shard,
                    int shards) {
  const ModelConfig& config = loaded.model->config();
  if (!loaded.tokenizer) throw Error(name, "a model with a tokenizer, which reads the texts", "one without");
  const int context = config.context > 0 ? config.context : 1024;
  if (window == 0) window = context;
  if (window < 2 || (config.context > 0 && window > config.context))
    throw Error("window", fmt::format("2 to {} tokens", context), std::to_string(window));
  if (shards < 1 || shard < 0 || shard >= shards)
    throw Error("shard", "i/n with 0 ≤ i < n", fmt::format("{}/{}", shard, shards));
  CorpusResults out;
  out.model = name;
  out.parameters = loaded.model->info().parameters;
  out.source = std::move(source);
  out.window = window;
  out.bos = loaded.tokenizer->adds_bos();
  out.shard = shard;
  out.shards = shards;
  out.statistics = CorpusStatistics(config.dims.layers, config.dims.heads, window);
  return out;
}

}  // namespace

CorpusRun::CorpusRun(LoadedModel model, const std::string& name, CorpusSource source, int window, int shard, int shards)
    : CorpusRun(model, name, fresh(model, name, std::move(source), window, shard, shards)) {}

CorpusRun::CorpusRun(LoadedModel model, const std::string& name, CorpusResults results)
    : model_(std::move(model)), results_(std::move(results)) {
  const CorpusResults now = fresh(model_, name, results_.source, results_.window, results_.shard, results_.shards);
  if (results_.model != now.model || results_.parameters != now.parameters || results_.bos != now.bos ||
      !results_.statistics.same_shape(now.statistics))
    throw Error("corpus", fmt::format("results of {} with {} parameters", now.model, now.parameters),
                fmt::format("of {} with {}", results_.model, results_.parameters), "start anew, or open that model");
  reader_ = std::make_unique<CorpusReader>(results_.source);
}

bool CorpusRun::next_piece() {
  while ((piece_ = reader_->next())) {
    if (piece_->number % results_.shards != results_.shard || piece_->number < results_.next_piece) continue;
    tokens_ = model_.tokenizer->encode(piece_->text);
    token_ = 0;
    window_ = 0;
    return true;
  }
  return false;
}

bool CorpusRun::step(const Ctx& ctx) {
  if (results_.finished) return false;
  const int room = results_.window - (results_.bos ? 1 : 0);
  for (;;) {
    if (!piece_ || token_ >= tokens_.size()) {
      if (next_piece()) continue;
      results_.finished = true;
      results_.skipped = reader_->skipped();
      results_.next_piece = reader_->pieces();
      results_.next_window = 0;
      return false;
    }
    // The longest passage whose own text, read alone, fits: cut at tokens that end with a character.
    const std::string& text = piece_->text;
    const auto from = static_cast<std::size_t>(tokens_[token_].begin);
    std::size_t count = std::min(tokens_.size() - token_, static_cast<std::size_t>(room)), to = from, fits = 0;
    for (; count > 0; --count) {
      to = static_cast<std::size_t>(tokens_[token_ + count - 1].end);
      if (to < text.size() && (static_cast<unsigned char>(text[to]) & 0xC0) == 0x80) continue;
      if (to == from) continue;
      fits = model_.tokenizer->encode(std::string_view(text).substr(from, to - from)).size();
      if (fits <= static_cast<std::size_t>(room)) break;
    }
    if (count == 0) {  // a single character of more tokens than the window holds
      ++token_;
      continue;
    }
    const PassagePlace place{piece_->number, window_, piece_->file, piece_->begin + static_cast<std::int64_t>(from),
                             piece_->begin + static_cast<std::int64_t>(to)};
    const bool done = place.piece == results_.next_piece && window_ < results_.next_window;
    if (!done && fits + (results_.bos ? 1 : 0) >= 2) {
      RunRequest request;
      request.text = text.substr(from, to - from);
      request.add_bos = results_.bos;
      request.capture.all_logits = false;
      const auto trace = run(model_, request, ctx);  // throws before anything is counted
      results_.statistics.add(*trace, place, ctx.backend.pool());
    }
    token_ += count;
    ++window_;
    if (done) continue;
    results_.next_piece = place.piece;
    results_.next_window = window_;
    return true;
  }
}

CorpusResults merge(const std::vector<CorpusResults>& parts, const std::vector<std::string>& names) {
  if (parts.empty()) throw Error("merge", "at least one part", "none");
  const auto name = [&](std::size_t i) { return i < names.size() ? names[i] : fmt::format("part {}", i); };
  std::vector<int> order(static_cast<std::size_t>(parts.front().shards), -1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const CorpusResults &part = parts[i], &first = parts.front();
    if (part.model != first.model || part.parameters != first.parameters || part.source != first.source ||
        part.window != first.window || part.bos != first.bos || !part.statistics.same_shape(first.statistics) ||
        part.shards != first.shards)
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
  for (std::size_t shard = 1; shard < order.size(); ++shard) out.statistics.merge(nth(parts, order[shard]).statistics);
  out.shard = 0;
  out.shards = 1;
  return out;
}

}  // namespace headscope
