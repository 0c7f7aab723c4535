#include "core/hub/hub_settings.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/io/model_location.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

/// As huggingface_hub reads its switches.
bool is_on(const char* name) {
  std::string value = variable(name);
  for (char& c : value)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

std::string without_blanks(std::string text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.back())) text.pop_back();
  text.erase(0, static_cast<std::size_t>(std::ranges::find_if_not(text, blank) - text.begin()));
  return text;
}

/// A header's value is printable ASCII; anything else could end it and begin another.
std::string checked(const std::string& token, const std::string& where) {
  const bool printable = std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
  if (!printable) throw Error(where, "a token of letters and digits", "other characters in it");
  return token;
}

std::string find_token() {
  if (is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return "";
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (const std::string token = without_blanks(variable(name)); !token.empty()) return checked(token, name);
  const std::string named = variable("HF_TOKEN_PATH");
  const auto homes = hugging_face_homes();
  const fs::path file = !named.empty() ? fs::path(named) : homes.empty() ? fs::path() : homes.front() / "token";
  std::error_code gone;
  if (file.empty() || !fs::is_regular_file(file, gone)) return "";
  return checked(without_blanks(read_file(file, 1 << 16)), file.string());
}

}  // namespace

HubSettings HubSettings::from_environment() {
  HubSettings settings;
  if (std::string endpoint = without_blanks(variable("HF_ENDPOINT")); !endpoint.empty()) {
    while (endpoint.ends_with('/')) endpoint.pop_back();
    const std::size_t scheme = endpoint.starts_with("https://") ? 8 : endpoint.starts_with("http://") ? 7 : 0;
    const std::string host = endpoint.substr(scheme, endpoint.find('/', scheme) - scheme);
    // A password in it would end in messages.
    if (scheme == 0 || host.empty() || host.find('@') != std::string::npos ||
        endpoint.find_first_of("?# \\") != std::string::npos)
      throw Error("HF_ENDPOINT", "an address such as https://huggingface.co, without a user's name",
                  host.find('@') != std::string::npos ? "a user's name in it" : "'" + excerpt(endpoint, 100) + "'");
    settings.endpoint = endpoint;
  }
  settings.token = find_token();
  settings.offline = is_on("HF_HUB_OFFLINE") || is_on("TRANSFORMERS_OFFLINE");
  if (const auto caches = cache_folders(); !caches.empty()) settings.cache = caches.front();
  return settings;
}

void HubSettings::need_network(const std::string& model) const {
  if (!offline) return;
  throw Error(model, "a network that may be used",
              is_on("HF_HUB_OFFLINE") ? "HF_HUB_OFFLINE is set" : "TRANSFORMERS_OFFLINE is set",
              find_in_cache(model)
                  ? "it is in the cache already, and opens without a network; to fetch it anew, unset that"
                  : "unset that to fetch models");
}

std::string HubSettings::host() const {
  const std::size_t scheme = endpoint.find("://");
  const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  return endpoint.substr(begin, endpoint.find('/', begin) - begin);
}

}  // namespace headscope
