#include "app/state/mechanism_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/state/mechanism_swaps.h"
#include "core/attention/masks.h"
#include "core/attention/mechanism_math.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/run/mechanism_input.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

Tensor first_rows(const Tensor& x, Index rows) {
  return x.slice(0, 0, std::min(rows, x.dim(0))).copy();
}

/// The same of the first tokens alone.
MechanismInput of_first(MechanismInput in, Index tokens) {
  in.q = first_rows(in.q, tokens), in.k = first_rows(in.k, tokens), in.v = first_rows(in.v, tokens);
  if (in.layer) {
    auto layer = std::make_shared<HeadsOfLayer>(*in.layer);
    for (auto* all : {&layer->q, &layer->k, &layer->v})
      for (Tensor& each : *all) each = first_rows(each, tokens);
    in.layer = std::move(layer);
  }
  return in;
}

std::shared_ptr<const HeadProjections> of_first(const std::shared_ptr<const HeadProjections>& all, Index tokens) {
  if (!all) return nullptr;
  auto out = std::make_shared<HeadProjections>(*all);
  out->x = first_rows(all->x, tokens);
  return out;
}

}  // namespace

MatricesByHand matrices_of(const WorkedExample& example) {
  const MechanismInput in = example.input();
  return {in.q, in.k, in.v, static_cast<double>(in.scale), in.rule->describe(), std::string(example.id)};
}

std::optional<MechanismView> parse_mechanism_view(std::string_view text) {
  constexpr std::string_view names[] = {"compare", "steps", "recurrent", "model", "cost"};
  const auto found = std::ranges::find(names, text);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<MechanismView>(found - std::begin(names));
}

MechanismInput input_of(const MechanismSource& source) {
  MechanismInput in;
  if (source.kind == MechanismSource::Kind::random) {
    const auto drawn = [&](std::uint64_t which) {
      return mechanism::times(mechanism::gaussian(source.n, source.d, 3 * source.seed + which),
                              static_cast<float>(source.spread));
    };
    in.q = drawn(0), in.k = drawn(1), in.v = drawn(2);
  } else {
    in.q = source.q, in.k = source.k, in.v = source.v;
  }
  in.scale = static_cast<float>(source.kind == MechanismSource::Kind::hand && source.scale > 0
                                    ? source.scale
                                    : 1 / std::sqrt(static_cast<double>(in.d())));
  in.rule = parse_mask(source.mask);
  return in;
}

std::shared_ptr<const MechanismPage> page_of(MechanismReport report, const MechanismOrigin& from) {
  MechanismPage page{std::move(report), from.source, from.head, from.trace, from.stack, from.other, {}, true, 0};
  if (page.trace) {
    const Trace& keys = from.other ? *from.other : *page.trace;
    for (Index i = 0; i < page.input.n(); ++i) page.names.queries.push_back(query_label(*page.trace, i));
    for (Index j = 0; j < page.input.m(); ++j) page.names.keys.push_back(token_label(keys, j));
  } else if (from.source == MechanismSource::Kind::hand) {
    for (const WorkedExample& example : worked_examples())
      if (example.id == from.example) page.names.queries = example.queries, page.names.keys = example.keys;
  }
  if (page.result.weights.defined())
    for (const float w : page.result.weights.values())
      page.shares = page.shares && (!std::isfinite(w) || (w >= 0 && w <= 1.0001f));
  if (page.comparison.difference.defined())
    for (const float w : page.comparison.difference.values())
      if (std::isfinite(w)) page.most_different = std::max(page.most_different, std::abs(static_cast<double>(w)));
  return std::make_shared<const MechanismPage>(std::move(page));
}

std::optional<MechanismCell> telling_cell(const MechanismPage& page) {
  constexpr Index few = 6;
  const auto in_last_row = [](const MechanismStep& step) {
    const Index row = step.value.dim(0) - 1;
    MechanismCell best{step.id, row, 0};
    for (Index j = 1; j < step.value.dim(1); ++j)
      if (std::abs(step.value.at(row, j)) > std::abs(step.value.at(row, best.column))) best.column = j;
    return best;
  };
  const MechanismStep *output = nullptr, *weights = nullptr, *last = nullptr;
  for (const MechanismStep& step : page.result.steps) {
    if (!step.explain || step.value.size() == 0) continue;
    last = &step;
    if (step.id == "output") output = &step;
    if (step.range == MechanismStep::Range::probability && step.columns == MechanismAxis::key) weights = &step;
  }
  if (output && page.input.m() <= few) return MechanismCell{output->id, output->value.dim(0) - 1, 0};
  if (const MechanismStep* told = weights ? weights : last) return in_last_row(*told);
  return std::nullopt;
}

MechanismController::MechanismController(JobRunner& jobs, DocumentEditor& editor, const RunController& run)
    : jobs_(jobs),
      editor_(editor),
      run_(run),
      mechanism_(find_mechanism("linear")),
      timing_(jobs, "mechanism times", to_say("measuring times")) {
  for (const Mechanism& each : mechanisms()) values_.emplace(each.id, each.usual());
  take(matrices_of(worked_examples()[0]));
  source_.kind = MechanismSource::Kind::head;
}

void MechanismController::choose(const std::string& id) {
  const Mechanism* found = find_mechanism(id);
  if (found) mechanism_ = found;
}

void MechanismController::set_value(std::string_view name, double value) {
  MechanismValues& values = values_.at(std::string(mechanism_->id));
  const std::string before = text_of({mechanism_, values});
  values.set(name, value);
  const auto& model = run_.results().model.model;
  if (!model || mechanism_->study) return;
  const ModelDims& dims = model->config().dims;
  MechanismSwaps swaps = swaps_of(editor_.document().edits, dims);
  bool any = false;
  for (auto& [head, spec] : swaps)
    if (spec == before) spec = text_of(choice()), any = true;
  if (any) editor_.set_edits(with_swaps(editor_.document().edits, swaps, dims));
}

void MechanismController::reset_values() {
  for (const MechanismParameter& p : mechanism_->parameters) set_value(p.name, p.usual);
}

void MechanismController::use_example(const WorkedExample& example) {
  take(matrices_of(example));
  editor_.history().close_step();
  keep();
}

void MechanismController::set_numbers(const Tensor& q, const Tensor& k, const Tensor& v) {
  take({q, k, v, 0, source_.mask, ""});
  keep();
}

void MechanismController::set_mask(const std::string& spec) {
  source_.mask = spec;
  changed_source();
  if (source_.kind != MechanismSource::Kind::hand) return;
  editor_.history().close_step();
  keep();
}

void MechanismController::take(const MatricesByHand& matrices) {
  source_.kind = MechanismSource::Kind::hand;
  source_.q = matrices.q, source_.k = matrices.k, source_.v = matrices.v;
  source_.scale = matrices.scale;
  source_.mask = matrices.mask;
  source_.example = matrices.example;
  ++numbers_version_;
  changed_source();
}

void MechanismController::keep() {
  auto matrices = std::make_shared<const MatricesByHand>(source_.by_hand());
  editor_.change("by hand", [&](Document& document) { document.by_hand = std::move(matrices); });
  by_hand_ = editor_.document().by_hand;
}

void MechanismController::swap_in(const std::vector<HeadId>& heads, bool in) {
  const auto& model = run_.results().model.model;
  if (!model || mechanism_->study) return;
  const ModelDims& dims = model->config().dims;
  MechanismSwaps swaps = swaps_of(editor_.document().edits, dims);
  for (const HeadId head : heads) {
    if (!dims.attends(head.layer)) continue;  // it has no attention that this could stand in for
    if (in)
      swaps[head] = text_of(choice());
    else
      swaps.erase(head);
  }
  editor_.history().close_step();
  editor_.set_edits(with_swaps(editor_.document().edits, swaps, dims));
}

void MechanismController::frame(bool shown, bool held) {
  timing_.frame();
  if (const auto& kept = editor_.document().by_hand; kept != by_hand_) {  // undo or redo went to other ones
    by_hand_ = kept;
    const MechanismSource::Kind shown_kind = source_.kind;
    take(kept ? *kept : matrices_of(worked_examples()[0]));
    if (!kept) source_.kind = shown_kind;  // a head on screen stays there when the last matrices by hand are undone
  }
  if (!shown) return;
  // A capture has weights, and no model that could tell queries, keys and values.
  if (source_.kind == MechanismSource::Kind::head && (!run_.results().run || run_.results().capture)) return;
  ask();
  // The times are of the shape and the values on the page; measured anew once the hand rests.
  if (!current() || held || mechanism_->study) return;
  if (const std::string now = fmt::format("{} {}×{}", text_of(choice()), page()->input.d(), page()->input.d_v());
      now != timed_) {
    timed_ = now;
    measure(unasked_seconds);
  }
}

void MechanismController::measure(double most_seconds) {
  if (!page()) return;
  timing_.start(
      std::make_shared<MechanismTiming>(choice(), page()->input.d(), page()->input.d_v(), most_seconds, times_.get()),
      [this](std::shared_ptr<const MechanismTimes> times) { times_ = std::move(times); });
}

HeadId MechanismController::head() const {
  return run_.softer_head().value_or(editor_.document().selected);
}

void MechanismController::ask() {
  const auto& run = run_.results().run;
  const HeadId head = this->head();
  const bool of_head = source_.kind == MechanismSource::Kind::head;
  const bool crosses = of_head && mechanism_->crosses, projections = of_head && mechanism_->reads_projections;
  PageOf key{text_of(choice()), source_version_, of_head ? std::optional(head) : std::nullopt,
             crosses,           projections,     of_head || mechanism_->reads_vocabulary ? run : nullptr};
  if (page_.asked_for(key)) return;
  // Another value on the same head of the same run needs no other queries, keys and values.
  const auto& last = page_.last_key();
  const auto known = last && of_head && last->head == head && last->run == run && last->source == source_version_ &&
                             last->crosses == crosses
                         ? page()
                         : nullptr;
  const Stack stack = crosses && run_.results().translates() ? Stack::cross : run ? run->stack : Stack::only;
  page_.want(jobs_, std::move(key),
             [chosen = choice(), source = source_, head, of_head, crosses, projections, known, run, stack,
              model = run_.results().model](const Ctx& ctx) {
               const Ctx quiet{.backend = ctx.backend, .stop = ctx.stop};
               MechanismOrigin from{source.kind, head, {}, {}, stack, source.example};
               MechanismInput in;
               if (known) {
                 in = known->input;
                 from.trace = known->trace, from.other = known->other;
               } else if (of_head) {
                 in = of_first(head_input(model, run->request, head, quiet, &from.trace, stack), source.first);
                 if (crosses && !model.model->encoder() && !source.other.empty()) {
                   const RunRequest other = asking_another_text(run->request, source.other);
                   in = crossed(in, of_first(head_input(model, other, head, quiet, &from.other, stack), source.first));
                 }
               } else {
                 in = input_of(source);
               }
               in.stop = ctx.stop;
               if (projections && !in.projections)
                 in.projections = of_first(head_projections(model, run->request, head, quiet, stack), source.first);
               if (chosen.mechanism->reads_vocabulary && run && model.model && !in.vocabulary)
                 in.vocabulary = vocabulary_use(model, run->request, quiet);
               return page_of(report_on(chosen, std::move(in)), from);
             });
}

}  // namespace headscope
