// What formulas of a lesson may ask of the analyses that Analyse's pages show: the same functions, the same names of
// stages and parts as on the screen.

#include <fmt/format.h>

#include <algorithm>

#include "core/analysis/logit_attribution.h"
#include "core/analysis/logit_lens.h"
#include "core/attention/masks.h"
#include "core/base/nearest_names.h"
#include "core/base/nth.h"
#include "core/lesson/given.h"
#include "core/metrics/rollout.h"
#include "core/trace/mixer_words.h"
#include "core/trace/model_heads.h"

namespace headscope {

using jinja::Arguments;
using jinja::Value;

namespace {

constexpr double usual_share = 0.5;  // of the residual stream in a rollout: the paper's, and the page's

/// One of those that there are, by its name. Throws Error, naming the nearest.
template <class All, class Name>
std::size_t named_in(const All& all, const std::string& wanted, const std::string& what, const std::string& where,
                     Name name) {
  std::vector<std::string> names;
  for (const auto& each : all) {
    if (name(each) == wanted) return names.size();
    names.push_back(name(each));
  }
  throw Error(where, what, "\"" + excerpt(wanted, 40) + "\"", nearest_names_hint(wanted, names));
}

/// A stage of the lens at a position.
struct LensCell {
  LogitLens lens;
  Index stage, row;
};
/// `followed` < 0: no token is. `at`: where the stage stands among the arguments, the row behind it.
LensCell lens_cell(LessonRun& run, const Arguments& a, std::int32_t followed, std::size_t at) {
  const Given g(run, a);
  const Model& model = *run.model().model;
  const Trace& trace = run.recorded(logit_lens_sites(model));
  const Index row = g.row_or_answer(at + 1);
  std::vector<std::int32_t> tokens;
  if (followed >= 0) tokens = follow(trace, followed);
  LensCell out{logit_lens(model, run.ctx(), trace, tokens, 1), 0, row};
  out.stage = static_cast<Index>(named_in(out.lens.stages, g.text(at, "stage"), "a stage of the logit lens", a.where,
                                          [](const LogitLens::Stage& each) { return each.name; }));
  return out;
}

/// Of the logit of the answer after a row, or of another token.
LogitAttribution attribution_at(LessonRun& run, const Arguments& a, std::size_t row_at) {
  const Given g(run, a);
  AttributionOf of;
  of.position = g.row_or_answer(row_at);
  of.token = a.find(row_at + 1, "token") ? run.token(g.text(row_at + 1, "token"), a.where)
                                         : most_probable(run.whole(), static_cast<int>(of.position)).id;
  return logit_attribution(*run.model().model, run.recorded(attribution_sites(*run.model().model)), of,
                           run.request().edits);
}

double share_of(LessonRun& run, const Arguments& a) {
  if (!a.find(2, "share")) return usual_share;
  const double share = Given(run, a).number(2, "share");
  if (!(share >= 0 && share < 1))
    throw Error(a.where, "the residual stream's share, from 0 to below 1", fmt::format("{}", share));
  return share;
}

Value rollout_cell(LessonRun& run, const Arguments& a, bool relative) {
  const Given g(run, a);
  const double share = share_of(run, a);
  const Tensor rolled = attention_rollout(mixing_matrices(run.trace(), share));
  const Index row = g.row(0), key = g.key(1);
  if (!relative) return static_cast<double>(rolled.at(row, key));
  const Tensor even = attention_rollout(mixing_matrices(run.trace(), share, true));
  return static_cast<double>(relative_to(rolled, even).at(row, key));
}

constexpr LessonTerm terms_of_analyses[] = {
    {"lens_probability(token, stage, row)",
     "of that next token by the logit lens, at a stage as the page names it (\"embedding\", \"0 attn\", \"3 mlp\"), "
     "after that row or the last",
     [](LessonRun& run, const Arguments& a) -> Value {
       const LensCell at = lens_cell(run, a, run.token(Given(run, a).text(0, "token"), a.where), 1);
       return static_cast<double>(at.lens.followed_probability.at(at.stage, at.row));
     }},
    {"lens_rank(token, stage, row)", "its place among all tokens there, 1 = the most probable",
     [](LessonRun& run, const Arguments& a) -> Value {
       const LensCell at = lens_cell(run, a, run.token(Given(run, a).text(0, "token"), a.where), 1);
       return std::int64_t{at.lens.rank(at.stage, at.row)};
     }},
    {"lens_answer(stage, row)", "the most probable token there",
     [](LessonRun& run, const Arguments& a) -> Value {
       const LensCell at = lens_cell(run, a, -1, 0);
       const NextToken& best = at.lens.cell(at.stage, at.row).front();
       return run.model().tokenizer ? run.reads(run.model().tokenizer->token(best.id)) : fmt::format("#{}", best.id);
     }},
    {"logit(row, token)", "of the answer after that row or the last, or of another token",
     [](LessonRun& run, const Arguments& a) -> Value { return attribution_at(run, a, 0).logit; }},
    {"attribution(part, row, token)",
     "what a part wrote to that logit directly, as the page of direct logit attribution names it: \"head 0.2\", \"MLP "
     "1\", \"embedding\", \"positions\", \"norm bias\"",
     [](LessonRun& run, const Arguments& a) -> Value {
       const LogitAttribution found = attribution_at(run, a, 1);
       const std::size_t part = named_in(found.parts, Given(run, a).text(0, "part"), "a part of the residual stream",
                                         a.where, [](const AttributionPart& each) { return name(each); });
       return found.parts[part].value;
     }},
    {"attribution_from(head, key, row, token)", "the share of what the head wrote to it that it read from that key",
     [](LessonRun& run, const Arguments& a) -> Value {
       const Given g(run, a);
       const HeadId head = g.head(0);
       const LogitAttribution found = attribution_at(run, a, 2);
       if (!found.by_source.defined())
         throw Error(a.where, "heads that read from positions", mixer_words(run.trace().model.dims, head.layer));
       return static_cast<double>(found.by_source.at(head_index(run.trace().model.dims, head), g.key(1)));
     }},
    {"most_attributed_head(row, token)", "the head that wrote most to that logit directly",
     [](LessonRun& run, const Arguments& a) -> Value {
       const LogitAttribution found = attribution_at(run, a, 0);
       const AttributionPart* most = nullptr;
       for (const AttributionPart& each : found.parts)
         if (each.kind == AttributionPart::Kind::head && (!most || each.value > most->value)) most = &each;
       if (!most) throw Error(a.where, "a model with heads", "none");
       return to_string(HeadId{most->layer, most->head});
     }},
    {"rollout(row, key, share)",
     "attention through all layers, the share of the residual stream in each being 0.5 where none is given",
     [](LessonRun& run, const Arguments& a) -> Value { return rollout_cell(run, a, false); }},
    {"rollout_relative(row, key, share)", "the same, divided by that of heads that spread their attention evenly",
     [](LessonRun& run, const Arguments& a) -> Value { return rollout_cell(run, a, true); }},
    {"mask_cells(mask)", "how many cells of a map, row by key, the mask leaves to be seen: mask_cells('window 4')",
     [](LessonRun& run, const Arguments& a) -> Value {
       const std::string spec = Given(run, a).text(0, "mask");
       if (hashes_vectors(spec)) throw Error(a.where, "a mask that is the same for every head", "\"" + spec + "\"");
       const auto rule = parse_mask(spec, a.where);
       const auto rows = static_cast<Index>(run.trace().queries().size());
       const auto keys = static_cast<Index>(run.trace().tokens.size());
       std::int64_t seen = 0;
       for (Index row = 0; row < rows; ++row)
         for (Index key = 0; key < keys; ++key) seen += !masked(*rule, row, key, keys);
       return seen;
     }},
};

}  // namespace

std::span<const LessonTerm> analysis_terms() {
  return terms_of_analyses;
}

}  // namespace headscope
