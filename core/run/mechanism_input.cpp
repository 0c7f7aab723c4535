#include "core/run/mechanism_input.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/edit.h"
#include "core/model/weights.h"
#include "core/trace/mixer_words.h"

namespace headscope {

namespace {

/// `edits` without what gives rows their weights in `layer` of this stack; an edit of all layers stays for the others.
std::vector<Intervention> spared(const std::vector<Intervention>& edits, int layer, int layers, Stack stack) {
  const auto decoder = [](Stack of) { return of == Stack::only || of == Stack::decoder; };
  std::vector<Intervention> out;
  for (const Intervention& edit : edits) {
    const bool here = edit.target.stack == stack || (decoder(edit.target.stack) && decoder(stack));
    if (!here || !edit.action->writes_weights() || !edit.target.reaches_layer(layer)) {
      out.push_back(edit);
      continue;
    }
    if (edit.target.layer) continue;
    for (int other = 0; other < layers; ++other)
      if (other != layer) {
        out.push_back(edit);
        out.back().target.layer = other;
      }
  }
  return out;
}

}  // namespace

MechanismInput head_input(const LoadedModel& model, const RunRequest& request, HeadId id, const Ctx& ctx,
                          std::shared_ptr<const Trace>* out_trace, Stack stack) {
  const auto [layer, head] = id;
  const bool encoder = stack == Stack::encoder && model.model->encoder();
  const ModelConfig& config = encoder ? model.model->encoder()->config() : model.model->config();
  if (layer >= 0 && layer < config.dims.layers && !config.dims.attends(layer))
    throw Error("mechanisms", config.dims.any_attends() ? "a layer that attends" : "a model with attention",
                config.dims.any_attends() ? fmt::format("layer {} of {}", layer, config.name) : config.name,
                fmt::format("it mixes tokens by {}, which has no queries, keys and values for another mechanism",
                            mixer_words(config.dims, layer)));
  const bool cross = stack == Stack::cross;  // where nothing is turned
  const SiteKind q_kind = cross ? SiteKind::q : meeting_site(config, false),
                 k_kind = cross ? SiteKind::k : meeting_site(config, true);
  if (layer < 0 || layer >= config.dims.layers || head < 0 || head >= config.dims.heads)
    throw Error("head", fmt::format("a layer below {} and a head below {}", config.dims.layers, config.dims.heads),
                to_string(id));
  RunRequest wanted = request;
  wanted.edits = spared(request.edits, layer, config.dims.layers, stack);
  wanted.capture = {};
  wanted.capture.maps = MapStorage::factored;
  wanted.capture.layers = {layer};
  wanted.capture.sites = {q_kind, k_kind, SiteKind::v};
  wanted.capture.all_logits = false;
  wanted.capture.byte_budget = request.capture.byte_budget;
  const std::shared_ptr<const Trace> whole = run(model, wanted, ctx), trace{whole, whole->part(stack)};
  if (!trace) throw Error("head " + to_string(id), "a stack that the model has", config.name);
  const AttentionMap& map = trace->map(id);
  if (!map.is_factored() || !map.rule())
    throw Error("head " + to_string(id), "its own scores", "a pattern that an edit replaced");
  const auto site = [&](SiteKind kind) -> const Tensor& {
    return trace->sites.at({kind, id.layer});
  };  // (query, head, d)
  MechanismInput in =
      input_of_head(heads_of_layer(site(q_kind), site(k_kind), site(SiteKind::v), layer, config.dims.layers), head);
  in.scale = map.scale();
  in.rule = std::shared_ptr<const AttentionRule>(trace, map.rule());
  in.stop = ctx.stop;
  if (out_trace) *out_trace = trace;
  in.temperature = score_scale(config, layer) / map.scale();
  return in;
}

std::shared_ptr<const VocabularyUse> vocabulary_use(const LoadedModel& model, const RunRequest& request,
                                                    const Ctx& ctx) {
  RunRequest wanted = request;
  wanted.capture = {};
  wanted.capture.maps = MapStorage::none;
  wanted.capture.sites = {SiteKind::final_normalized};
  wanted.capture.byte_budget = request.capture.byte_budget;
  const std::shared_ptr<const Trace> trace = run(model, wanted, ctx);
  const Tensor &logits = trace->logits, &normalized = trace->sites.at({SiteKind::final_normalized});
  const Index n = logits.dim(0), words = logits.dim(1);
  auto use = std::make_shared<VocabularyUse>();
  use->frequency.assign(static_cast<std::size_t>(words), 0.0);
  for (Index i = 0; i < n; ++i) {
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (Index w = 0; w < words; ++w) most = std::max(most, static_cast<double>(logits.at(i, w)));
    for (Index w = 0; w < words; ++w) sum += std::exp(static_cast<double>(logits.at(i, w)) - most);
    for (Index w = 0; w < words; ++w)
      nth(use->frequency, w) += std::exp(static_cast<double>(logits.at(i, w)) - most) / (sum * static_cast<double>(n));
  }
  use->hidden = normalized.slice(0, n - 1, n).copy();
  if (model.tokenizer && model.tokenizer->vocab_size() >= words)
    for (Index w = 0; w < words; ++w) use->words.push_back(model.tokenizer->token(static_cast<std::int32_t>(w)).label);
  use->from = say("{}, mean of its {} next-token distributions on this text", trace->model.name, n);
  return use;
}

std::shared_ptr<const HeadProjections> head_projections(const LoadedModel& model, const RunRequest& request, HeadId id,
                                                        const Ctx& ctx, Stack stack) {
  const bool encoder = stack == Stack::encoder && model.model->encoder();
  const LoadedModel own = encoder ? model.encoder() : model;
  const ModelConfig& config = own.model->config();
  if (stack == Stack::cross || !config.dims.attends(id.layer) || config.latent() || config.changes_z()) return nullptr;
  RunRequest wanted = request;
  wanted.capture = {};
  wanted.capture.maps = MapStorage::none;
  wanted.capture.layers = {id.layer};
  wanted.capture.sites = {attention_input(config, id.layer)};
  wanted.capture.all_logits = false;
  wanted.capture.byte_budget = request.capture.byte_budget;
  const std::shared_ptr<const Trace> whole = run(model, wanted, ctx), trace{whole, whole->part(stack)};
  const Site read{attention_input(config, id.layer), id.layer};
  const BlockWeights block = own.model->weights().blocks.at(static_cast<std::size_t>(id.layer));
  const HeadWeights& head = block.heads.at(static_cast<std::size_t>(id.head));
  auto out = std::make_shared<HeadProjections>();
  out->x = trace->sites.at(read).packed();
  const auto floats = [](const Tensor& x) { return x.defined() ? x.packed() : x; };
  out->q = floats(head.q), out->k = floats(head.k), out->v = floats(head.v);
  out->q_bias = floats(head.q_bias), out->k_bias = floats(head.k_bias), out->v_bias = floats(head.v_bias);
  const Index width = head.o.dim(0), model_width = head.o.dim(1);
  out->o = Tensor::uninitialized({width * static_cast<Index>(block.heads.size()), model_width});
  for (std::size_t h = 0; h < block.heads.size(); ++h) {
    const Tensor rows = block.heads[h].o.packed();
    std::copy_n(rows.data(), rows.size(), &out->o.ref(static_cast<Index>(h) * width, 0));
  }
  out->from = name(read);
  return out;
}

RunRequest asking_another_text(RunRequest request, const std::string& text) {
  request.ids.clear(), request.ids_are_whole = false, request.masked.clear();
  request.text = text;
  std::erase_if(request.edits, [](const Intervention& edit) {
    return edit.target.positions || !edit.action->positions().empty() || !edit.action->key_positions().empty();
  });
  return request;
}

MechanismInput crossed(const MechanismInput& asking, const MechanismInput& other) {
  MechanismInput in = asking;
  in.k = other.k, in.v = other.v;
  in.layer = nullptr, in.projections = nullptr;
  in.rule = full_rule();
  in.two_texts = true;
  return in;
}

}  // namespace headscope
