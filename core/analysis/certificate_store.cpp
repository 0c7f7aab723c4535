// Certificates as JSON, and the folder of those of earlier.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "core/analysis/certificate.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/fnv.h"
#include "core/base/json.h"
#include "core/base/user_folders.h"
#include "core/base/version.h"
#include "core/io/json_view.h"
#include "core/io/strict_json.h"

namespace headscope {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {
constexpr const char* certificate_type = "headscope certificate";
constexpr int certificate_version = 1;
constexpr std::size_t size_limit = std::size_t{16} << 20, most_kept = 512;
constexpr int most = std::numeric_limits<std::int32_t>::max();

/// Nanoseconds since 1970; a clock's own beginning is nobody else's business.
std::int64_t nanoseconds(fs::file_time_type time) {
  const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}
fs::file_time_type file_time(std::int64_t nanoseconds) {
  const std::chrono::sys_time<std::chrono::nanoseconds> since{std::chrono::nanoseconds(nanoseconds)};
  return std::chrono::time_point_cast<fs::file_time_type::duration>(std::chrono::file_clock::from_sys(since));
}

ordered_json as_json(const Gap& gap) {  // NaN becomes null
  ordered_json out{{"difference", gap.value}, {"bound", gap.bound}, {"layer", gap.layer},
                   {"head", gap.head},        {"query", gap.query}, {"key", gap.key}};
  if (gap.stack != Stack::only) out["stack"] = name_in(stack_names, gap.stack);
  return out;
}

Gap gap_from(const JsonView& value) {
  JsonFields fields(value);
  Gap gap{.value = std::nan("")};
  constexpr double any = std::numeric_limits<double>::max();
  fields.read("difference", gap.value, 0, any);
  fields.read("bound", gap.bound, 0, any);
  fields.read("layer", gap.layer, -1, most);
  fields.read("head", gap.head, -1, most);
  std::int64_t query = -1, key = -1;
  fields.read("query", query, -1, most);
  fields.read("key", key, -1, most);
  fields.read("stack", gap.stack, stack_names);
  gap.query = query;
  gap.key = key;
  fields.done();
  return gap;
}

Certificate::Check check_from(const JsonView& value) {
  JsonFields fields(value);
  Certificate::Check check;
  fields.read("text", check.text);
  fields.read("beside", check.witness);
  fields.read("tokens", check.tokens, 0, most);
  fields.read("untried_window", check.untried_window, 0, most);
  fields.read("spread", check.found.spread, 0, std::numeric_limits<double>::max());
  if (const auto patterns = fields.find("patterns"))
    for (const JsonView& gap : patterns->elements("layers")) check.found.patterns.push_back(gap_from(gap));
  if (const auto logits = fields.find("logits")) check.found.logits = gap_from(*logits);
  if (const auto losses = fields.find("losses")) check.found.losses = gap_from(*losses);
  fields.done();
  return check;
}
}  // namespace

fs::path weights_place(const ModelLocation& model) {
  std::error_code failed;
  const fs::path& place = model.weights.empty() ? model.folder : model.weights;
  const fs::path whole = fs::absolute(place, failed);
  return (failed ? place : whole).lexically_normal();
}

std::string to_json(const Certificate& certificate) {
  ordered_json out{{"type", certificate_type},
                   {"version", certificate_version},
                   {"model", certificate.model},
                   {"family", certificate.family},
                   {"place", certificate.place.string()},
                   {"program", certificate.program},
                   {"engine", certificate.engine},
                   {"date", certificate.date},
                   {"files", ordered_json::array()},
                   {"checks", ordered_json::array()}};
  for (const FilesStamp::File& file : certificate.files.files())
    out["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"written", nanoseconds(file.written)}});
  for (const Certificate::Check& check : certificate.checks) {
    ordered_json one{{"text", check.text},           {"beside", check.witness},
                     {"tokens", check.tokens},       {"untried_window", check.untried_window},
                     {"spread", check.found.spread}, {"patterns", ordered_json::array()}};
    for (const Gap& gap : check.found.patterns) one["patterns"].push_back(as_json(gap));
    if (check.found.logits) one["logits"] = as_json(*check.found.logits);
    if (check.found.losses) one["losses"] = as_json(*check.found.losses);
    out["checks"].push_back(std::move(one));
  }
  // Names of other bytes than UTF-8 are not found again: such a model is checked anew.
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Certificate certificate_from_json(const std::string& text, const std::string& where) {
  const json parsed = parse_strict_json(text, where);
  JsonFields fields(parsed, where);
  std::string type;
  int version = 0;
  fields.read("type", type);
  fields.read("version", version, 0, most);
  if (type != certificate_type || version != certificate_version)
    throw Error(where,
                fmt::format("a certificate, \"type\": \"{}\" of version {}", certificate_type, certificate_version),
                fmt::format("\"{}\" of version {}", type, version));
  Certificate out;
  fields.read("model", out.model);
  fields.read("family", out.family);
  fields.read("place", out.place);
  fields.read("program", out.program);
  fields.read("engine", out.engine);
  fields.read("date", out.date);
  if (const auto files = fields.find("files")) {
    std::vector<FilesStamp::File> all;
    for (const JsonView& each : files->elements("files")) {
      JsonFields file(each);
      std::string name;
      file.read("name", name);
      const auto bytes = file.find("bytes"), written = file.find("written");
      if (!bytes || !written) each.refuse("a file's name, bytes and time");
      all.push_back({std::move(name), bytes->natural(), file_time(written->integer())});
      file.done();
    }
    out.files = FilesStamp(std::move(all));
  }
  if (const auto checks = fields.find("checks"))
    for (const JsonView& check : checks->elements("checks")) out.checks.push_back(check_from(check));
  fields.done();
  return out;
}

fs::path CertificateStore::file_of(const fs::path& place) const {
  return folder_ / fmt::format("{:016x}.json", fnv1a(place.string()));
}

std::optional<Certificate> CertificateStore::find(const fs::path& model) const {
  if (folder_.empty()) return std::nullopt;
  try {
    const ModelLocation location = locate_model(model);
    const fs::path place = weights_place(location), file = file_of(place);
    std::error_code failed;
    if (!fs::exists(file, failed)) return std::nullopt;
    Certificate known = certificate_from_json(read_file(file, size_limit), file.string());
    const FilesStamp files = stamp_of(location);
    if (known.place != place || known.program != program_version || files.empty() || known.files != files)
      return std::nullopt;
    return known;
  } catch (const std::exception&) {  // as good as none
    return std::nullopt;
  }
}

void CertificateStore::keep(const Certificate& certificate) const {
  if (folder_.empty()) return;
  std::error_code failed;
  fs::create_directories(folder_, failed);
  if (failed) throw Error(folder_.string(), "a folder for what is known of models", failed.message());
  fs::permissions(folder_, fs::perms::owner_all, failed);  // they hold beginnings of texts
  write_file_atomically(file_of(certificate.place), to_json(certificate));
  std::vector<std::pair<fs::file_time_type, fs::path>> all;
  for (auto at = fs::directory_iterator(folder_, failed); !failed && at != fs::directory_iterator();
       at.increment(failed)) {
    std::error_code gone;
    const fs::file_time_type written = at->last_write_time(gone);
    if (!gone && at->path().extension() == ".json") all.emplace_back(written, at->path());
  }
  if (all.size() <= most_kept) return;
  std::ranges::sort(all);
  for (std::size_t i = 0; i + most_kept < all.size(); ++i) fs::remove(all[i].second, failed);
}

fs::path certificates_folder() {
  const fs::path state = state_folder();
  return state.empty() ? state : state / "certificates";
}

}  // namespace headscope
