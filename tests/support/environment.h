#pragma once
// Environment variables for the length of a test, also of the programs that it starts.

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace headscope::testing {

class Environment {
 public:
  Environment() = default;
  ~Environment() {
    for (const auto& [name, value] : before_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  void set(const std::string& name, const std::string& value) {
    const char* const old = std::getenv(name.c_str());
    before_.emplace(name, old ? std::optional<std::string>(old) : std::nullopt);
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  /// A Hugging Face home and a hub of the test's own, and nothing else that the user may have said of them.
  void use_hub(const std::filesystem::path& home, const std::string& endpoint) {
    for (const char* other :
         {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE",
          "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "XDG_CACHE_HOME", "http_proxy"})
      set(other, "");
    set("HF_HOME", home.string());
    set("HOME", home.string());  // whose own cache is not looked into
    set("HF_ENDPOINT", endpoint);
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace headscope::testing
