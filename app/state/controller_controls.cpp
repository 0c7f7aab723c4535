#include "app/state/controller_controls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>

#include "app/state/compare_controller.h"
#include "app/state/corpus_controller.h"
#include "app/state/generation_controller.h"
#include "app/state/mechanism_controller.h"
#include "app/state/positions_controller.h"
#include "app/state/training_controller.h"
#include "core/attention/positions/position_methods.h"
#include "core/base/error.h"

namespace headscope {

namespace {
constexpr int many = 1 << 24;

/// Which one of 0 … `last` is looked at, of what has grown; nullopt, −1 in a file, is the newest. Returns whether a
/// file says another: of what still grows it is none. A film can go over them.
bool looks_back(ControlsRecord& record, const char* name, std::optional<Index>& at, Index last, bool grows) {
  const Index before = at.value_or(-1);
  Index now = before;
  record.field(name, now, -1, many);
  record.withdraw(name);
  if (grows) return false;
  if (last > 0) record.offer(name, static_cast<double>(at.value_or(last)), 0, static_cast<double>(last), true);
  if (now == before || now > last) return false;
  at = now < 0 ? std::nullopt : std::optional(now);
  return true;
}
}  // namespace

void controls_of(GenerationController& controller, ControlsRecord& record) {
  GenerationController::Settings& settings = controller.settings();
  record.field("temperature", settings.sampling.temperature, 0, 100);
  record.field("top_k", settings.sampling.top_k, 0, many);
  record.field("top_p", settings.sampling.top_p, 1e-9, 1);
  record.field("greedy", settings.greedy);
  record.field("seed", settings.seed);
  record.field("past_end", settings.past_end);
  record.field("pace", settings.pace, 0, 1e6);
  const auto steps = std::ssize(controller.branch().steps), cursor = static_cast<Index>(controller.cursor());
  std::optional<Index> step = cursor < steps ? std::optional(cursor) : std::nullopt;
  if (looks_back(record, "step", step, steps - 1, controller.running()))
    controller.show(step ? static_cast<std::size_t>(*step) : std::numeric_limits<std::size_t>::max());
  BeamSettings& beams = controller.beam_settings();
  record.field("beams", beams.width, 1, most_beams);
  record.field("length_penalty", beams.length_penalty, -100, 100);
  record.field("beam_tokens", beams.tokens, 1, many);
  record.field("early_stopping", beams.stopping, BeamSettings::Stopping::never);
  record.field("dropped_beams", controller.shows_dropped());
  record.field("streamed", controller.streamed(), GenerationController::Streamed::open);
  StreamingSettings streaming = controller.streaming_settings();
  record.field("window", streaming.window, 2, many);
  record.field("sinks", streaming.sinks, 1, many);
  if (streaming.sinks < streaming.window) controller.streaming_settings() = streaming;
}

void controls_of(CompareController& controller, ControlsRecord& record) {
  CompareController::With with = controller.with();
  record.field("with", with, CompareController::With::training);
  if (with != CompareController::With::training) controller.set_with(with);
  record.field("text", controller.text());
  std::filesystem::path model = controller.model();
  record.field("model", model);
  if (model != controller.model()) controller.set_model(model);
}

void controls_of(PositionsController& controller, ControlsRecord& record) {
  PositionsView& view = controller.view;
  record.field("rope", view.rope, PositionsView::Rope::wavelengths);
  for (const auto& [name, position] : {std::pair{"query", &view.query}, {"key", &view.key}}) {
    Index chosen = position->value_or(-1);  // nobody chose it: it follows the pinned cell
    record.field(name, chosen, -1, many);
    *position = chosen < 0 ? std::nullopt : std::optional(chosen);
    record.withdraw(name);
  }
  const double last = controller.vectors() ? static_cast<double>(controller.vectors()->tokens() - 1) : 0;
  if (last > 0) {
    record.offer("query", static_cast<double>(controller.query()), 0, last, true);
    record.offer("key", static_cast<double>(controller.key()), 0, last, true);
  }
  record.field("shift", view.shift, 0, many);
  record.field("base", view.base, 0, 1e12);
  record.offer("base", controller.rotary().base, 1, 1e12, false, true);  // 0: its own
  record.field("scaling", view.scaling, RotaryConfig::Scaling::llama3);
  record.field("factor", view.factor, 1, 1e6);
  record.field("ramp", view.ramp, RotaryConfig::Ramp::whole_pairs);
  record.field("layout", view.layout, RotaryLayout::interleaved);
  record.field("source", view.source, PositionsView::Source::typed);
  record.field("seed", view.seed);
  record.field("typed_query", view.typed_query);
  record.field("typed_key", view.typed_key);
  record.field("past_context", view.past_context);
  record.field("table_shift", view.table_shift, 0, many);
  record.field("centered", view.centered);
  record.field("in_model", view.in_model);
  record.field("both_directions", view.both_directions);
  record.field("fitted", view.fitted);
  record.field("on_top", view.on_top);
  // Each of one page alone.
  record.inside("sinusoidal", [&](ControlsRecord& page) {
    page.field("position", view.position, 0, 255);
    page.field("dimensions", view.dimensions, 4, 64);
    page.field("positions", view.positions, 16, 256);
  });
  record.inside("shaw", [&](ControlsRecord& page) { page.field("window", view.window, 1, 32); });
  record.inside("t5", [&](ControlsRecord& page) {
    page.field("buckets", view.buckets, 4, 64);
    page.field("max_distance", view.max_distance, 3, 512);
  });
  keep_possible(view);
  record.inside("chunks", [&](ControlsRecord& page) {
    page.field("chunk", view.chunk, 0, many);
    page.offer("chunk", controller.chunk(), 1, std::max(controller.context() - 1, 1), true);  // 0: the usual one
  });
  record.inside("alibi", [&](ControlsRecord& page) { page.field("head", view.head, 0, many); });
}

void controls_of(MechanismController& controller, ControlsRecord& record) {
  std::string id(controller.mechanism().id);
  record.field("mechanism", id);
  controller.choose(id);
  record.inside("values", [&](ControlsRecord& values) {
    for (const MechanismParameter& p : controller.mechanism().parameters) {
      double value = controller.values().number(p.name);
      const std::string name(p.name);
      values.field(name.c_str(), value, p.low, p.high);
      using Kind = MechanismParameter::Kind;
      if (p.kind == Kind::choice || p.kind == Kind::toggle)
        values.withdraw(name.c_str());
      else
        values.offer(name.c_str(), value, p.low, p.high, p.kind == Kind::whole, p.logarithmic);
      if (values.reading()) controller.set_value(p.name, value);
    }
  });
  record.field("view", controller.view, MechanismView::cost);
  if (const auto& page = controller.page()) {  // the token that the recurrent view stands at
    std::optional<Index> token;
    if (controller.token != MechanismController::last_token) token = controller.token;
    if (looks_back(record, "token", token, page->input.n() - 1, false))
      controller.token = token ? static_cast<int>(*token) : MechanismController::last_token;
  }
  std::string folded = fmt::format("{}", fmt::join(controller.folded, " "));
  record.field("folded", folded);
  if (record.reading()) {
    std::istringstream ids(folded);
    controller.folded = {std::istream_iterator<std::string>(ids), {}};
  }
  MechanismSource& source = controller.source();
  // Matrices made by hand are in no session file; a head or random numbers are.
  MechanismSource::Kind kind = source.kind;
  record.field("source", kind, MechanismSource::Kind::hand);
  if (kind != MechanismSource::Kind::hand) source.kind = kind;
  record.field("first", source.first, 2, 1 << 20);
  record.field("other", source.other);
  record.field("n", source.n, 1, 4096);
  record.field("d", source.d, 1, 4096);
  record.field("spread", source.spread, 0, 1e6);
  record.field("seed", source.seed);
  if (record.reading()) controller.changed_source();
}

void controls_of(CorpusController& controller, ControlsRecord& record) {
  CorpusDraft& draft = controller.draft();
  record.field("stories", draft.drawn);  // as it was called when nothing else was drawn
  record.field("count", draft.count, 1, 1'000'000'000);
  record.field("seed", draft.seed, 0, std::numeric_limits<int>::max());
  record.field("path", draft.path);
  record.field("lines", draft.lines);
  record.field("window", draft.window, 0, many);
}

void controls_of(TrainingController& controller, ControlsRecord& record) {
  std::optional<Index> moment = controller.shown();
  using Phase = TrainingController::Phase;
  const bool grows = controller.phase() == Phase::running || controller.phase() == Phase::preparing;
  if (looks_back(record, "moment", moment, std::ssize(controller.moments()) - 1, grows)) controller.show(moment);
  std::string recipe = record.reading() ? "" : recipe_json(controller.draft());
  record.field("recipe", recipe);
  if (!record.reading() || recipe.empty()) return;
  try {
    controller.draft() = parse_recipe(recipe, "session");
  } catch (const Error&) {  // one that was being written makes no sense yet: the draft stays
  }
}

}  // namespace headscope
