#include "core/train/checkpoint.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/io/json_view.h"
#include "core/io/safetensors.h"
#include "core/io/strict_json.h"

namespace headscope {

namespace {

using nlohmann::json;

constexpr const char* format_name = "headscope-checkpoint";
constexpr const char* version = "1";

const std::string& metadata(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    throw Error(file.path().string(), fmt::format("a checkpoint, whose metadata holds \"{}\"", key), "none");
  return found->second;
}

/// JSON has no NaN: null stands for it.
double number_or_null(const JsonView& value) {
  return value.json().is_null() ? std::numeric_limits<double>::quiet_NaN() : value.number();
}

json curve_json(const std::vector<TrainingPoint>& curve) {
  json points = json::array();
  for (const TrainingPoint& point : curve) {
    json& numbers = points.emplace_back(
        json{point.step, point.loss, std::isnan(point.held_out) ? json(nullptr) : json(point.held_out)});
    if (!std::isnan(point.balance)) numbers.push_back(point.balance);
  }
  return points;
}

TrainingRecord parse_record(std::string_view text, const std::string& where) {
  const json parsed = parse_strict_json(text, where);
  const JsonView root(parsed, where);
  TrainingRecord record;
  record.steps = root.at("steps").integer(0);
  record.seconds = root.at("seconds").number();
  for (const JsonView& point : root.at("curve").elements("points")) {
    const std::vector<JsonView> numbers = point.elements("numbers", 3, 4);
    record.curve.push_back({numbers[0].integer(), number_or_null(numbers[1]), number_or_null(numbers[2]),
                            numbers.size() > 3 ? numbers[3].number() : nan});
  }
  return record;
}

}  // namespace

std::string training_json(const Checkpoint& checkpoint) {
  std::vector<TrainingPoint> measured;
  for (const TrainingPoint& point : checkpoint.curve)
    if (!std::isnan(point.held_out)) measured.push_back(point);
  const nlohmann::ordered_json out = {
      {"steps", checkpoint.step}, {"seconds", std::round(checkpoint.seconds)}, {"curve", curve_json(measured)}};
  return out.dump() + "\n";
}

TrainingRecord load_training_record(const std::filesystem::path& file) {
  return parse_record(read_file(file, std::size_t{64} << 20), file.string());
}

bool TrainingPoint::operator==(const TrainingPoint& other) const {
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  return step == other.step && loss == other.loss && same(held_out, other.held_out) && same(balance, other.balance);
}

std::size_t Checkpoint::bytes() const {
  std::size_t sum = 0;
  for (const auto& [name, tensor] : state) sum += tensor.bytes();
  return sum;
}

void save_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& file) {
  const json progress = {
      {"steps", checkpoint.step}, {"seconds", checkpoint.seconds}, {"curve", curve_json(checkpoint.curve)}};
  SafetensorsWriter writer;
  writer.metadata("format", format_name);
  writer.metadata("version", version);
  writer.metadata("recipe", recipe_json(checkpoint.recipe));
  writer.metadata("progress", progress.dump());
  for (const auto& [name, tensor] : checkpoint.state) writer.add(name, tensor);
  writer.write(file);
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  if (metadata(file, "format") != format_name)
    throw Error(path.string(), format_name, fmt::format("\"{}\"", metadata(file, "format")));
  if (metadata(file, "version") != version)
    throw Error(path.string(), fmt::format("version {}", version), fmt::format("\"{}\"", metadata(file, "version")));
  Checkpoint out;
  out.recipe = parse_recipe(metadata(file, "recipe"), path.string() + ": recipe");
  TrainingRecord record = parse_record(metadata(file, "progress"), path.string() + ": progress");
  out.step = record.steps;
  out.seconds = record.seconds;
  out.curve = std::move(record.curve);
  for (const auto& [name, entry] : file.tensors()) out.state.emplace(name, file.tensor(name).copy());
  return out;
}

}  // namespace headscope
