#include "core/hub/manifest.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/hub/hub_client.h"
#include "core/io/json_view.h"

namespace headscope {

std::vector<ManifestEntry> read_manifest(const std::filesystem::path& file) {
  constexpr std::size_t most_entries = 1000;
  const nlohmann::json document = read_json_file(file);
  JsonFields fields(document, file.string());
  std::string type;
  int version = 0;
  fields.read("type", type);
  if (type != "headscope models") throw Error(file.string(), "\"type\": \"headscope models\"", "\"" + type + "\"");
  fields.read("version", version, 1, 1);
  std::vector<ManifestEntry> entries;
  if (const auto models = fields.find("models")) {
    for (const JsonView& model : models->elements("models", 0, most_entries)) {
      JsonFields each(model);
      ManifestEntry entry;
      entry.name = model.at("name").text();
      entry.family = model.at("family").text();
      entry.bytes = model.at("bytes").natural();
      entry.licence = model.at("licence").text();
      for (const char* known : {"name", "family", "bytes", "licence"}) each.find(known);
      each.read("parameters", entry.parameters);
      each.read("gated", entry.gated);
      each.read("why", entry.why);
      each.done();
      check_model_name(entry.name);
      entries.push_back(std::move(entry));
    }
  }
  fields.done();
  return entries;
}

}  // namespace headscope
