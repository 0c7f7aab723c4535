#include "app/state/transcript_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/nth.h"
#include "core/io/json_view.h"
#include "core/io/strict_json.h"

namespace headscope {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {
constexpr std::int64_t most_whole = std::numeric_limits<std::int32_t>::max();

ordered_json choice_json(const Generator::Choice& choice) {
  return {{"temperature", choice.settings.temperature},
          {"top_k", choice.settings.top_k},
          {"top_p", choice.settings.top_p},
          {"seed", std::to_string(choice.seed)}};  // of 64 bits, more than a JSON number is sure to hold
}

Generator::Choice choice_from(const JsonView& value) {
  JsonFields fields(value);
  Generator::Choice choice;
  std::string seed = "1";
  fields.read("temperature", choice.settings.temperature, 0, std::numeric_limits<double>::max());
  fields.read("top_k", choice.settings.top_k, 0, most_whole);
  fields.read("top_p", choice.settings.top_p, 0, 1);
  fields.read("seed", seed);
  fields.done();
  const auto [end, error] = std::from_chars(seed.data(), seed.data() + seed.size(), choice.seed);
  if (seed.empty() || error != std::errc() || end != seed.data() + seed.size())
    value.at("seed").refuse("a whole number from 0 as text");
  check(choice.settings, value.where());
  return choice;
}

/// An array of whole numbers below `end`.
std::vector<std::int64_t> numbers_from(JsonFields& fields, const char* key, std::int64_t end) {
  std::vector<std::int64_t> out;
  if (const auto value = fields.find(key))
    for (const JsonView& each : value->elements("numbers")) out.push_back(each.integer(0, end - 1));
  return out;
}

TranscriptRecord::Branch branch_from(const JsonView& value, const std::vector<Generator::Choice>& choices) {
  JsonFields fields(value);
  TranscriptRecord::Branch branch;
  std::int64_t from = 0;
  fields.read("id", branch.id, 0, most_whole);
  fields.read("parent", branch.parent, -1, most_whole);
  const auto tokens = numbers_from(fields, "tokens", most_whole);
  const auto chosen = numbers_from(fields, "choices", static_cast<std::int64_t>(choices.size()));
  fields.read("from", from, 0, static_cast<std::int64_t>(tokens.size()));
  if (chosen.size() != tokens.size())
    value.at("choices").refuse(fmt::format("one for each of {} tokens", tokens.size()), std::to_string(chosen.size()));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    branch.steps.push_back({static_cast<std::int32_t>(tokens[i]), nth(choices, chosen[i])});
  for (const std::int64_t step : numbers_from(fields, "given", static_cast<std::int64_t>(tokens.size()))) {
    TranscriptRecord::Step& given = nth(branch.steps, step);
    given.choice.given = given.token;
  }
  fields.done();
  branch.from = static_cast<std::size_t>(from);
  return branch;
}
}  // namespace

ordered_json to_json(const TranscriptRecord& transcript) {
  std::vector<Generator::Choice> choices;
  const auto index_of = [&](Generator::Choice choice) {
    choice.given.reset();
    const auto found = std::ranges::find(choices, choice);
    if (found != choices.end()) return found - choices.begin();
    choices.push_back(choice);
    return std::ssize(choices) - 1;
  };
  ordered_json branches = ordered_json::array();
  for (const TranscriptRecord::Branch& branch : transcript.branches) {
    ordered_json tokens = ordered_json::array(), chosen = ordered_json::array(), given = ordered_json::array();
    for (std::size_t i = 0; i < branch.steps.size(); ++i) {
      tokens.push_back(branch.steps[i].token);
      chosen.push_back(index_of(branch.steps[i].choice));
      if (branch.steps[i].choice.given) given.push_back(i);
    }
    branches.push_back({{"id", branch.id},
                        {"parent", branch.parent},
                        {"from", branch.from},
                        {"tokens", tokens},
                        {"choices", chosen},
                        {"given", given}});
  }
  ordered_json all = ordered_json::array();
  for (const Generator::Choice& choice : choices) all.push_back(choice_json(choice));
  return {{"prompt", ordered_json::parse(to_json(transcript.prompt))},
          {"choices", all},
          {"branches", branches},
          {"chosen", transcript.chosen},
          {"next", choice_json(transcript.next)}};
}

TranscriptRecord transcript_from_json(const JsonView& value) {
  JsonFields fields(value);
  TranscriptRecord transcript;
  fields.find("prompt");
  transcript.prompt = run_request_from_json(value.at("prompt"));
  std::vector<Generator::Choice> choices;
  if (const auto all = fields.find("choices"))
    for (const JsonView& each : all->elements("choices")) choices.push_back(choice_from(each));
  fields.find("branches");
  for (const JsonView& each : value.at("branches").elements("branches", 1))
    transcript.branches.push_back(branch_from(each, choices));
  std::int64_t chosen = 0;
  fields.read("chosen", chosen, 0, std::ssize(transcript.branches) - 1);
  transcript.chosen = static_cast<std::size_t>(chosen);
  if (const auto next = fields.find("next")) transcript.next = choice_from(*next);
  fields.done();
  return transcript;
}

}  // namespace headscope
