// The tools of `headscope-cli read` about what streams and heads write.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/cli/read_report.h"
#include "app/render/reading_pictures.h"
#include "core/analysis/edit_probe.h"
#include "core/analysis/need.h"
#include "core/analysis/whatif.h"
#include "core/base/nth.h"
#include "core/trace/model_heads.h"
#include "viz/scene/framed.h"
#include "viz/scene/map_cells.h"

namespace headscope::cli {

namespace {
class Lens final : public ReadTool {
 public:
  Lens() : ReadTool("lens", "Logit lens: what every residual stream would answer") {}
  void add_options(Command& command) override {
    position_.add_to(command);
    command.add_option("--token", token_, "The token to follow (default: the one the text goes on with)")
        .type_name("TOKEN");
    top_.add_to(command);
  }
  CaptureSpec capture(const Model& model) const override { return with_sites(logit_lens_sites(model)); }
  Report read(const ReadRun& run) const override;

 private:
  PositionOption position_;
  std::string token_;
  TopOption top_;
};

Report Lens::read(const ReadRun& run) const {
  const Index position = position_.in(*run.trace);
  const bool picture = run.trace->model.objective == Objective::image_class;  // whose class is what it says itself
  const std::int32_t token = !token_.empty() ? answer_token(run.loaded, token_, "--token")
                             : picture       ? most_probable(*run.trace).id
                                             : -1;
  LogitLens found;
  run.console.with_progress("logit lens", [&](const Ctx& ctx) {
    found = logit_lens(*run.loaded.model, ctx, *run.trace, follow(*run.trace, token), std::min(top_.count, 10));
  });
  Report out;
  const TokenName name = namer(run.loaded);
  const char* const own =
      run.trace->model.objective == Objective::masked_token ? "what stood at masked tokens" : "the text's next token";
  out.fact({"follows", "follows", token >= 0 ? name(token) : own});
  const bool all = run.for_scripts && !position_.given;
  auto& rows = out.table("rows", {"position", "stage", "top", "probability", "entropy", "kl_to_answer",
                                  "followed_probability", "followed_rank", "next_best"});
  for (Index i = all ? 0 : position; i <= (all ? found.positions - 1 : position); ++i)
    for (Index s = 0; s < static_cast<Index>(found.stages.size()); ++s) {
      const auto cell = found.cell(s, i);
      std::string rest;
      for (std::size_t k = 1; k < cell.size() && k < 4; ++k)
        rest += fmt::format("{}{} {:.3f}", k > 1 ? "  " : "", name(cell[k].id), cell[k].probability);
      const bool followed = found.rank(s, i) > 0;
      rows.add({i, nth(found.stages, s).name, name(cell[0].id), cell[0].probability, found.entropy.at(s, i),
                found.kl.at(s, i), found.followed_probability.at(s, i),
                followed ? Cell(found.rank(s, i)) : Cell(std::nan("")), rest});
    }
  out.picture = picture_of(lens_matrix(found, run.trace, LensColor::probability, name), *run.trace, 46);
  return out;
}

class Attribution final : public ReadTool {
 public:
  Attribution() : ReadTool("attribution", "Direct logit attribution: what each head and MLP wrote to a logit") {}
  void add_options(Command& command) override {
    head_.add_to(command);
    position_.add_to(command);
    token_.add_to(command);
    against_.add_to(command);
    top_.add_to(command);
  }
  CaptureSpec capture(const Model& model) const override { return with_sites(attribution_sites(model)); }
  Report read(const ReadRun& run) const override;

 private:
  HeadOption head_;
  PositionOption position_;
  TokenOption token_;
  AgainstOption against_;
  TopOption top_;
};

Report Attribution::read(const ReadRun& run) const {
  AttributionOf of;
  of.position = position_.in(*run.trace);
  of.token = token_.in(run.loaded, *run.trace, of.position);
  of.against = against_.in(run.loaded);
  const LogitAttribution found = logit_attribution(*run.loaded.model, *run.trace, of, run.request.edits);
  const TokenName name = namer(run.loaded);
  Report out;
  out.facts({{"position", "position", of.position},
             {"token", "token", name(of.token)},
             {"against", "against", of.against ? name(*of.against) : "–"},
             {"logit", of.against ? "logit difference" : "logit", found.logit},
             {"sum_of_parts", "sum of parts", found.sum()},
             {"norm_scale", "final norm's scale, frozen", found.scale}});
  if (!head_.given.empty()) {
    const HeadId head = head_.in(*run.trace);
    need_attention(run.loaded.model->config(), head.layer, "attribution: --head");
    auto& rows = out.table("rows", {"key", "token", "part"});
    for (Index key = 0; key <= found.of.position; ++key)
      rows.add({key, token_label(*run.trace, key), found.by_source.at(head_index(run.trace->model.dims, head), key)});
    out.picture = picture_of(source_matrix(found, run.trace, {head}), *run.trace);
    return out;
  }
  auto& rows = out.table("rows", {"part", "value", "share"});
  std::vector<AttributionPart> parts = found.parts;
  if (!run.for_scripts) {
    std::ranges::stable_sort(parts, std::ranges::greater{}, [](const AttributionPart& p) { return std::abs(p.value); });
    parts.resize(std::min(parts.size(), static_cast<std::size_t>(top_.count)));
  }
  for (const AttributionPart& part : parts) rows.add({headscope::name(part), part.value, part.value / found.logit});
  out.picture = picture_of(attribution_matrix(found, run.trace->model.dims), *run.trace);
  return out;
}

class Weighted final : public ReadTool {
 public:
  Weighted() : ReadTool("weighted", "Attention weighted by the norms of what it carries") {}
  void add_options(Command& command) override {
    head_.add_to(command);
    command.add_option("--by", weighting_, "attention (α), value (α ‖v‖) or output (‖α v W_O‖)")
        .check(one_of({"attention", "value", "output"}))
        .show_default();
  }
  CaptureSpec capture(const Model& model) const override { return with_sites(weighting_sites(model.config())); }
  bool reads_cross() const override { return true; }
  Report read(const ReadRun& run) const override;

 private:
  HeadOption head_;
  std::string weighting_ = "output";
};

Report Weighted::read(const ReadRun& run) const {
  const ModelWeights weights = weights_of(run);
  Report out;
  if (head_.given.empty()) {
    if (run.draws) throw UsageError("-o needs --head: the head whose map is drawn");
    auto& rows =
        out.table("rows", {"head", "first_by_attention", "first_by_value", "first_by_output", "same_strongest_key"});
    for (const WeightedHead& head : weighted_heads(*run.trace, weights))
      rows.add({to_string(head.id), head.first_attention, head.first_value, head.first_output, head.same_top});
    return out;
  }
  const HeadId head = head_.in(*run.trace);
  Weighting weighting = Weighting::output;
  for (const Weighting each : {Weighting::attention, Weighting::value, Weighting::output})
    if (headscope::name(each) == weighting_) weighting = each;
  const AttentionMap map = weighted_map(*run.trace, weights, head, weighting);
  const std::vector<float> norms = key_norms(*run.trace, weights, head, weighting);
  out.fact({"weighting", "weighting", formula(weighting, behind_heads(run.loaded.model->config()))});
  auto& rows = out.table("rows", {"key", "token", "norm", "received", "received_by_attention"});
  const AttentionMap& plain = run.trace->map(head);
  for (Index key = 0; key < map.n_key(); ++key)
    rows.add({key, token_label(*run.trace, key), nth(norms, key), nth(map.stats().column_mass, key),
              nth(plain.stats().column_mass, key)});
  out.picture = [trace = run.trace, weights, head, weighting](const Style& style) {
    HeadMapOptions options;
    options.head = head;
    return weighted_scene(*trace, weights, weighting, options, style);
  };
  return out;
}

class Circuits final : public ReadTool {
 public:
  Circuits() : ReadTool("circuits", "QK and OV circuits of a head, and its copying score") {}
  void add_options(Command& command) override {
    head_.add_to(command);
    top_.add_to(command);
    command.add_option("--circuit", circuit_, "Of the picture: ov or qk").check(one_of({"ov", "qk"})).show_default();
    command.add_option("--distance", distance_, "Tokens from key to query, for rotary positions").show_default();
    command.add_flag("--full", full_, "The strongest pairs of the whole vocabulary instead of the text's tokens");
  }
  Report read(const ReadRun& run) const override;

 private:
  HeadOption head_;
  TopOption top_;
  std::string circuit_ = "ov";
  int distance_ = 0;
  bool full_ = false;
};

Report Circuits::read(const ReadRun& run) const {
  const HeadId head = head_.in(*run.trace);
  const CircuitOf of{head, distance_};
  const TokenName name = namer(run.loaded);
  const CopyingScore score = copying_score(*run.loaded.model, run.console.backend(), head);
  Report out;
  out.facts({{"copying", "copying score (OV eigenvalues)", score.copying},
             {"matching", "matching score (QK eigenvalues)", score.matching}});
  if (const std::string note = circuit_note(run.loaded.model->config()); !note.empty()) out.line(note);
  if (full_) {
    FullCircuits found;
    run.console.with_progress("circuits",
                              [&](const Ctx& ctx) { found = full_circuits(*run.loaded.model, ctx, of, top_.count); });
    out.fact({"copies_first", "tokens that raise themselves most", found.copies_first});
    out.fact({"copies_ten", "… or among the ten they raise most", found.copies_ten});
    out.fact({"matches_first", "tokens that look at themselves most", found.matches_first});
    auto& rows = out.table("rows", {"circuit", "from", "to", "value"});
    for (const TokenPair& pair : found.ov) rows.add({"OV", name(pair.from), name(pair.to), pair.value});
    for (const TokenPair& pair : found.qk) rows.add({"QK", name(pair.from), name(pair.to), pair.value});
    return out;
  }
  const TokenCircuits found =
      token_circuits(*run.loaded.model, run.console.backend(), of, run.trace->ids(), std::min(top_.count, 10));
  auto& rows = out.table("rows", {"looked_at", "raises", "strongest_key", "score"});
  for (std::size_t i = 0; i < found.tokens.size(); ++i) {
    std::string raised;
    for (int k = 0; k < std::min(found.kept, 5); ++k) {
      const TokenPair& pair = found.raises[i * static_cast<std::size_t>(found.kept) + static_cast<std::size_t>(k)];
      raised += fmt::format("{}{} {:+.2f}", k ? "  " : "", name(pair.to), pair.value);
    }
    std::size_t best = 0;
    for (std::size_t j = 1; j < found.tokens.size(); ++j)
      if (found.qk.at(static_cast<Index>(i), static_cast<Index>(j)) >
          found.qk.at(static_cast<Index>(i), static_cast<Index>(best)))
        best = j;
    rows.add({name(found.tokens[i]), raised, name(found.tokens[best]),
              found.qk.at(static_cast<Index>(i), static_cast<Index>(best))});
  }
  out.picture = picture_of(circuit_matrix(found, circuit_ == "qk" ? Circuit::qk : Circuit::ov, name), *run.trace);
  return out;
}

}  // namespace

ReadTools writing_tools() {
  return tools_of<Lens, Attribution, Weighted, Circuits>();
}

}  // namespace headscope::cli
