#include "core/train/checkpoint.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
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

double number(const json& value, const std::string& where) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!value.is_number()) throw Error(where, "a number", json_excerpt(value));
  return value.get<double>();
}

}  // namespace

bool TrainingPoint::operator==(const TrainingPoint& other) const {
  const bool same_held_out = held_out == other.held_out || (std::isnan(held_out) && std::isnan(other.held_out));
  return step == other.step && loss == other.loss && same_held_out;
}

std::size_t Checkpoint::bytes() const {
  std::size_t sum = 0;
  for (const auto& [name, tensor] : state) sum += tensor.bytes();
  return sum;
}

void save_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& file) {
  json progress = {{"step", checkpoint.step}, {"seconds", checkpoint.seconds}, {"curve", json::array()}};
  for (const TrainingPoint& point : checkpoint.curve)
    progress["curve"].push_back(
        {point.step, point.loss, std::isnan(point.held_out) ? json(nullptr) : json(point.held_out)});
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
  const std::string where = path.string() + ": progress";
  const json progress = parse_strict_json(metadata(file, "progress"), where);
  if (!progress.is_object() || !progress.contains("step") || !progress["step"].is_number_integer() ||
      progress["step"].get<std::int64_t>() < 0 || !progress.contains("seconds") || !progress.contains("curve") ||
      !progress["curve"].is_array())
    throw Error(where, "step, seconds and curve", json_excerpt(progress));
  out.step = progress["step"].get<std::int64_t>();
  out.seconds = number(progress["seconds"], where);
  for (const json& point : progress["curve"]) {
    if (!point.is_array() || point.size() != 3 || !point[0].is_number_integer())
      throw Error(where, "points of three numbers", json_excerpt(point));
    out.curve.push_back({point[0].get<std::int64_t>(), number(point[1], where), number(point[2], where)});
  }
  for (const auto& [name, entry] : file.tensors()) out.state.emplace(name, file.tensor(name).copy());
  return out;
}

}  // namespace headscope
