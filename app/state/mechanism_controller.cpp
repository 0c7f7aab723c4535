#include "app/state/mechanism_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/state/mechanism_swaps.h"
#include "core/attention/masks.h"
#include "core/attention/mechanism_math.h"
#include "core/base/error.h"
#include "core/run/mechanism_input.h"

namespace headscope {

namespace {

// A line of the measured times ends with the first point that takes longer.
constexpr double usual_most_seconds = 0.1;

/// The same of the first tokens alone.
MechanismInput of_first(MechanismInput in, Index tokens) {
  const Index queries = std::min(tokens, in.q.dim(0)), keys = std::min(tokens, in.k.dim(0));
  in.q = in.q.slice(0, 0, queries).copy();
  in.k = in.k.slice(0, 0, keys).copy();
  in.v = in.v.slice(0, 0, keys).copy();
  return in;
}

MatricesByHand matrices_of(const WorkedExample& example) {
  const MechanismInput in = example.input();
  return {in.q, in.k, in.v, static_cast<double>(in.scale), in.rule->describe(), std::string(example.id)};
}

}  // namespace

std::optional<MechanismView> parse_mechanism_view(std::string_view text) {
  constexpr std::string_view names[] = {"compare", "steps", "recurrent", "model"};
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

std::shared_ptr<const MechanismPage> page_of(MechanismReport report, MechanismSource::Kind source, HeadId head,
                                             std::shared_ptr<const Trace> trace) {
  MechanismPage page{std::move(report), source, head, std::move(trace), true, 0};
  if (page.result.weights.defined())
    for (const float w : page.result.weights.values())
      page.shares = page.shares && (!std::isfinite(w) || (w >= 0 && w <= 1.0001f));
  if (page.comparison.difference.defined())
    for (const float w : page.comparison.difference.values())
      if (std::isfinite(w)) page.most_different = std::max(page.most_different, std::abs(static_cast<double>(w)));
  return std::make_shared<const MechanismPage>(std::move(page));
}

MechanismController::MechanismController(JobRunner& jobs, DocumentEditor& editor, const RunController& run)
    : jobs_(jobs),
      editor_(editor),
      run_(run),
      mechanism_(find_mechanism("linear")),
      timing_(jobs, "mechanism times", "measuring times") {
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
  if (source_.kind == MechanismSource::Kind::head && !run_.results().run) return;
  ask();
  // The times are of the shape and the values on the page; measured anew once the hand rests.
  if (!current() || held || mechanism_->study) return;
  if (const std::string now = fmt::format("{} {}×{}", text_of(choice()), page()->input.d(), page()->input.d_v());
      now != timed_) {
    timed_ = now;
    measure(usual_most_seconds);
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
  PageOf key{text_of(choice()), source_version_, of_head ? std::optional(head) : std::nullopt,
             of_head || mechanism_->reads_vocabulary ? run : nullptr};
  if (page_.asked_for(key)) return;
  // Another value on the same head of the same run needs no other queries, keys and values.
  const auto& last = page_.last_key();
  const auto known =
      last && of_head && last->head == head && last->run == run && last->source == source_version_ ? page() : nullptr;
  page_.want(
      jobs_, std::move(key),
      [chosen = choice(), source = source_, head, of_head, known, run, model = run_.results().model](const Ctx& ctx) {
        const Ctx quiet{.backend = ctx.backend, .stop = ctx.stop};
        std::shared_ptr<const Trace> trace = known ? known->trace : nullptr;
        MechanismInput in =
            known     ? known->input
            : of_head ? of_first(head_input(model, run->request, head, quiet, &trace, run->stack), source.first)
                      : input_of(source);
        in.stop = ctx.stop;
        if (chosen.mechanism->reads_vocabulary && run && model.model && !in.vocabulary)
          in.vocabulary = vocabulary_use(model, run->request, quiet);
        return page_of(report_on(chosen, std::move(in)), source.kind, head, trace);
      });
}

}  // namespace headscope
