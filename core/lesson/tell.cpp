#include "core/lesson/tell.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <regex>

#include "core/base/error.h"
#include "core/base/nth.h"

namespace headscope {

namespace {

using jinja::Members;
using jinja::Value;
using Kind = LessonQuestion::Kind;

Members names_for(const LessonStep& step, const std::shared_ptr<LessonRun>& run) {
  return lesson_names(run, {step.scene.mechanism, step.scene.on});
}

std::string where_of(const LessonStep& step) {
  return fmt::format("step \"{}\"", step.title);
}

/// "12" is a position, all else a token.
Value place_named(const std::string& text) {
  if (!text.empty() && text.find_first_not_of("0123456789", text.front() == '-' ? 1 : 0) == std::string::npos &&
      text != "-" && text.size() < 10)
    return Value(static_cast<std::int64_t>(std::stoi(text)));
  return Value(text);
}

std::string place_text(LessonRun& run, Index at) {
  return fmt::format("{}, position {}", run.reads(nth(run.trace().tokens, at)), at);
}

std::string number_text(double value) {
  const double size = std::abs(value);
  const bool whole = size == std::floor(size) && size < 1e15;
  return (value < 0 ? "−" : "") + (whole ? fmt::format("{:.0f}", size) : fmt::format("{:.4g}", size));
}

}  // namespace

LessonTold tell(const LessonStep& step, const std::shared_ptr<LessonRun>& run) {
  const Members names = names_for(step, run);
  LessonTold out;
  for (const LessonText& each : step.prose) out.prose.push_back(each.told(names));
  for (const LessonText& each : step.notes) out.notes.push_back(each.told(names));
  if (step.question) {
    out.ask = step.question->ask.told(names);
    for (const LessonText& each : step.question->choices) out.choices.push_back(each.told(names));
  }
  for (const Token& token : run->trace().tokens) out.tokens.push_back(token.label);
  out.layers = run->trace().model.dims.layers;
  out.heads = run->trace().model.dims.heads;
  for (int layer = 0; layer < out.layers; ++layer) out.heads_of.push_back(run->trace().model.dims.heads_of(layer));
  const LessonScene& scene = step.scene;
  if (!scene.head.empty()) out.head = run->head(Value(scene.head), where_of(step));
  if (!scene.row.empty()) out.row = run->position(place_named(scene.row), run->trace().queries(), where_of(step));
  if (!scene.cell.empty()) {
    const auto space = scene.cell.find(' ');
    if (space == std::string::npos) throw Error(where_of(step), "a cell: a row and a key", "\"" + scene.cell + "\"");
    out.row = run->position(place_named(scene.cell.substr(0, space)), run->trace().queries(), where_of(step));
    out.key = run->position(place_named(scene.cell.substr(space + 1)), run->trace().tokens, where_of(step));
  }
  return out;
}

LessonReply answered(const LessonStep& step, const std::shared_ptr<LessonRun>& run, const LessonGuess& guess) {
  const LessonQuestion& q = step.question.value();
  const Members names = names_for(step, run);
  const Value truth = q.answer->value(names);
  const std::string& where = q.answer->where();
  const ModelDims& dims = run->trace().model.dims;
  LessonReply out;
  switch (q.kind) {
    case Kind::token: {
      const std::vector<Token>& tokens = run->trace().tokens;  // that can be looked at
      const Index at = run->position(truth, tokens, where), guessed = std::get<Index>(guess);
      const auto count = static_cast<Index>(tokens.size());
      if (guessed < 0 || guessed >= count) throw Error(where, "a token of the text", std::to_string(guessed));
      out = {at == guessed, place_text(*run, at), place_text(*run, guessed), 1.0 / static_cast<double>(count), {}};
      break;
    }
    case Kind::head: {
      const HeadId head = run->head(truth, where), guessed = std::get<HeadId>(guess);
      out = {head == guessed, "head " + to_string(head), "head " + to_string(guessed), 1.0 / dims.all_heads(), {}};
      break;
    }
    case Kind::number: {
      if (!truth.number() || !std::isfinite(truth.real())) throw Error(where, "a number", truth.printed());
      if (q.within <= 0 && truth.real() != std::floor(truth.real()))
        throw Error(where, "within: how far off is still right, of a number that is not whole", truth.printed());
      const double guessed = std::get<double>(guess);
      out = {std::abs(guessed - truth.real()) <= q.within,
             number_text(truth.real()),
             number_text(guessed),
             std::numeric_limits<double>::quiet_NaN(),
             {}};
      break;
    }
    case Kind::choice: {
      std::vector<std::string> choices;
      for (const LessonText& each : q.choices) choices.push_back(each.told(names));
      const std::string right = truth.printed();
      const Index guessed = std::get<Index>(guess);
      if (std::ranges::find(choices, right) == choices.end()) {
        std::string all;
        for (const std::string& each : choices) all += (all.empty() ? "" : " | ") + each;
        throw Error(where, "one of the choices: " + all, "\"" + right + "\"");
      }
      out = {
          nth(choices, guessed) == right, right, nth(choices, guessed), 1.0 / static_cast<double>(choices.size()), {}};
      break;
    }
    case Kind::until:
      out.right = truth.truth();
      out.chance = std::numeric_limits<double>::quiet_NaN();
      break;
  }
  out.because = q.because.told(names);
  return out;
}

std::optional<double> number_typed(std::string text) {
  for (const std::string_view gap : {" ", "\u00A0", "\u202F"})  // also those that do not break a line
    for (auto at = text.find(gap); at != std::string::npos; at = text.find(gap)) text.erase(at, gap.size());
  for (const std::string_view minus : {"−", "–"})
    if (text.starts_with(minus)) text.replace(0, minus.size(), "-");
  // A comma parts thousands where three digits follow each, and begins a fraction elsewhere.
  static const std::regex thousands("-?[1-9][0-9]{0,2}(,[0-9]{3})+(\\.[0-9]*)?");
  if (std::regex_match(text, thousands))
    std::erase(text, ',');
  else if (text.find('.') == std::string::npos)
    std::ranges::replace(text, ',', '.');
  double value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

LessonGuess any_guess(const LessonQuestion& question) {
  if (question.kind == Kind::head) return HeadId{};
  if (question.kind == Kind::number || question.kind == Kind::until) return 0.0;
  return Index{0};
}

std::vector<std::string> faults_of(const LessonStep& step, const std::shared_ptr<LessonRun>& run) {
  std::vector<std::string> faults;
  const auto attempt = [&](auto work) {
    try {
      work();
    } catch (const Error& error) {
      faults.push_back(error.what());
    }
  };
  attempt([&] { tell(step, run); });
  if (step.question)
    attempt([&] {
      if (answered(step, run, any_guess(*step.question)).right && step.question->kind == Kind::until)
        throw Error(step.question->answer->where(), "something to do", "a condition that is true at the beginning");
    });
  attempt([&] {
    const Members names = names_for(step, run);
    for (const Formula& claim : step.expect)
      attempt([&] {
        if (!claim.value(names).truth()) throw Error(claim.where(), "this to be true: " + claim.source(), "it is not");
      });
  });
  return faults;
}

}  // namespace headscope
