#include "core/train/translation_scores.h"

#include <algorithm>

#include "core/base/nth.h"
#include "core/metrics/alignment.h"
#include "core/train/evaluation.h"
#include "core/train/head_taps.h"
#include "core/train/translate_task.h"

namespace headscope {

namespace {

using Places = std::vector<std::vector<Index>>;  // by word: tokens, as rows or keys of a map

Places places(const std::vector<Token>& tokens, const std::vector<std::string>& words) {
  Places out;
  for (const TextSpan& span : spans_of(words)) out.push_back(tokens_of(tokens, span));
  return out;
}

/// A token is written by the row before its own.
Places writing(Places rows) {
  for (auto& word : rows)
    for (Index& row : word) --row;
  return rows;
}

/// Where the words of a sentence stand in a run of it.
struct Stand {
  Stand(const Trace& trace, const Translation& sentence)
      : keys(places(trace.encoder->tokens, sentence.source)),
        rows(places(trace.tokens, sentence.target)),
        before(writing(rows)) {}
  Places keys, rows, before;  // before: the rows that write them
};

/// Sums over sentences of one head.
struct Sums {
  AlignmentCounts written, read;
  double weight = 0;
};

double weight_on_truth(const AttentionMap& map, const Places& rows, const Places& keys, const AlignedPairs& truth) {
  double sum = 0;
  for (const AlignedPair& pair : truth) {
    const auto& word = nth(rows, pair.target);
    for (const Index row : word)
      for (const Index key : nth(keys, pair.source))
        sum += static_cast<double>(map.weight(row, key)) / static_cast<double>(word.size());
  }
  return sum;
}

}  // namespace

const CrossHeadScore& TranslationScores::best() const {
  return *std::ranges::min_element(heads, {}, &CrossHeadScore::written);
}

std::vector<double> alignment_errors(const Trace& trace, const Translation& sentence) {
  const Stand at(trace, sentence);
  std::vector<double> errors;
  for (const AttentionMap& map : trace.cross->maps)
    errors.push_back(score_alignment(strongest_words(map, at.before, at.keys), sentence.known).error_rate);
  return errors;
}

std::vector<std::int32_t> greedy_translation(const Model& model, const Ctx& ctx, std::span<const std::int32_t> source) {
  const ModelConfig& c = model.config();
  SourceMemory memory;
  memory.memory = model.encoder()->forward(ctx, source).memory;
  Ctx own = ctx;
  own.source = &memory;
  KvCache cache(c.dims, c.context);
  std::vector<std::int32_t> written;
  std::int32_t last = c.decoder_start;
  while (cache.length() < cache.capacity()) {
    const Tensor logits = model.forward(own, std::span(&last, 1), &cache, {}, false).logits.select(0, 0).packed();
    const auto values = logits.values();
    last = static_cast<std::int32_t>(std::ranges::max_element(values) - values.begin());
    if (last == c.eos) break;
    written.push_back(last);
  }
  return written;
}

TranslationScores measure_translation(const LoadedModel& loaded, const TranslateTask& task, int sentences,
                                      const HeldOut& few, const Ctx& ctx) {
  const Model& model = *loaded.model;
  const ModelDims& dims = model.config().dims;
  const Ctx quiet{.backend = ctx.backend, .stop = ctx.stop};
  TranslationScores out;
  std::vector<Translation> held_out = task.held_out_translations(sentences);
  std::erase_if(held_out, [&](const Translation& each) { return !task.fits(each, model.config().context); });
  out.sentences = static_cast<int>(held_out.size());
  int right = 0;
  for (const Translation& sentence : held_out)
    right += greedy_translation(model, quiet, task.source_ids(sentence)) == task.target_ids(sentence);
  out.exact = static_cast<double>(right) / out.sentences;

  std::vector<Sums> sums(static_cast<std::size_t>(dims.layers * dims.heads));
  AlignmentCounts chance, in_order;
  for (const Translation& sentence : held_out) {
    RunRequest request;
    request.source = sentence.source_text();
    request.text = sentence.target_text();
    request.capture.maps = MapStorage::dense;
    const auto trace = run(loaded, request, quiet);
    const auto [keys, rows, before] = Stand(*trace, sentence);
    for (std::size_t h = 0; h < sums.size(); ++h) {
      const AttentionMap& map = trace->cross->maps[h];
      sums[h].written += count_pairs(strongest_words(map, before, keys), sentence.known);
      sums[h].read += count_pairs(strongest_words(map, rows, keys), sentence.known);
      sums[h].weight += weight_on_truth(map, before, keys, sentence.known.sure);
    }
    const auto sources = static_cast<int>(keys.size()), targets = static_cast<int>(rows.size());
    chance += chance_pairs(sources, targets, sentence.known);
    AlignedPairs same;
    for (int word = 0; word < targets; ++word) same.insert({std::min(word, sources - 1), word});
    in_order += count_pairs(same, sentence.known);
    out.possible += static_cast<std::int64_t>(sentence.known.possible.size());
  }
  out.sure = static_cast<std::int64_t>(chance.sure);
  out.chance = chance.score().error_rate;
  out.in_order = in_order.score().error_rate;

  const double whole = held_out_loss(model, quiet, few);
  for (std::size_t h = 0; h < sums.size(); ++h) {
    CrossHeadScore& head = out.heads.emplace_back();
    head.id = {static_cast<int>(h) / dims.heads, static_cast<int>(h) % dims.heads};
    head.written = sums[h].written.score().error_rate;
    head.read = sums[h].read.score().error_rate;
    head.weight = sums[h].weight / static_cast<double>(out.sure);
    WithoutHead tap(head.id);
    head.loss_change = held_out_loss(model, quiet, few, &tap) - whole;
    if (ctx.progress) ctx.progress->store(static_cast<float>(h + 1) / static_cast<float>(sums.size()));
  }
  return out;
}

}  // namespace headscope
