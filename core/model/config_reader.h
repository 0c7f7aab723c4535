#pragma once
// config.json with every value checked as it is read: a wrong type or an absurd number is an Error that names file and
// key. A key whose value is null counts as absent, as in Hugging Face's own reader.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/model/config.h"

namespace headscope {

/// A key of config.json, with those of the objects around it in front: "rope_scaling.factor".
struct ConfigKey {
  std::string key, value;  ///< the value as JSON, cut where it is long
  bool used = false;       ///< somebody asked for it; else it changes nothing here
  bool operator==(const ConfigKey&) const = default;
};

class ConfigReader {
 public:
  static ConfigReader open(const std::filesystem::path& file);
  /// `spelled`: keys that are called otherwise in the file that this JSON was made from, for Errors.
  static ConfigReader parse(const std::string& json, std::string where,
                            std::map<std::string, std::string> spelled = {});

  bool has(const std::string& key) const;   ///< present and not null
  bool null(const std::string& key) const;  ///< present and null
  bool is_object(const std::string& key) const;
  bool is_text(const std::string& key) const;
  bool is_list(const std::string& key) const;
  /// Throws Error when absent, not an integer, or outside [low, high].
  int integer(const std::string& key, int low, int high) const;
  int integer(const std::string& key, int low, int high, int fallback) const;
  double number(const std::string& key, double low, double high) const;
  double number(const std::string& key, double low, double high, double fallback) const;
  bool flag(const std::string& key, bool fallback) const;
  std::string text(const std::string& key) const;
  std::string text(const std::string& key, const std::string& fallback) const;
  /// A list of strings, or of whole numbers in [low, high]; nullopt when absent.
  std::optional<std::vector<std::string>> texts(const std::string& key) const;
  std::optional<std::vector<int>> integers(const std::string& key, int low, int high) const;
  /// One whole number, which stands for both, or a list of two; nullopt when absent.
  std::optional<std::pair<int, int>> one_or_two(const std::string& key, int low, int high) const;
  /// Which must be there. Python's Infinity, bare or as {"__float__": "Infinity"}, is one of them.
  std::vector<double> numbers(const std::string& key, double low, double high) const;
  /// GPT-Neo's [[["global", "local"], 2], …]: the names, each list so often; nullopt when absent.
  std::optional<std::vector<std::string>> repeated_texts(const std::string& key, int most) const;
  /// A nested object; nullopt when absent.
  std::optional<ConfigReader> object(const std::string& key) const;
  /// The same object, with these numbers where it has none.
  ConfigReader with_defaults(const std::map<std::string, double>& numbers) const;
  /// The same object, as if it had not this key, which counts as read.
  ConfigReader without(const std::string& key) const;
  /// A token id, or the first of a list of ids. nullopt when absent or outside [0, vocab): an id that no logit can give
  /// never ends a text, and tools do write such ids.
  std::optional<std::int32_t> token(const std::string& key, int vocab) const;
  /// One of the named values. Throws Error listing the names.
  template <class T>
  T choice(const std::string& key, const std::string& value,
           const std::vector<std::pair<const char*, T>>& known) const {
    std::string names;
    for (const auto& [name, result] : known) {
      if (value == name) return result;
      names += (names.empty() ? "" : ", ") + std::string(name);
    }
    throw error(key, "one of " + names, "\"" + value + "\"");
  }

  /// Whether the key is there, holds something else than `neutral` (JSON), null or false, and none of the others was
  /// asked for it.
  bool unread(const std::string& key, const std::string& neutral) const;

  /// Every key of the file, and whether it was asked for up to now. An object that was opened gives its keys instead.
  std::vector<ConfigKey> keys() const;

  Error error(const std::string& key, const std::string& expected, const std::string& found,
              const std::string& hint = "") const;

 private:
  struct Data;
  explicit ConfigReader(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

/// The same as load_config(path); `keys` becomes all of its keys, and whether they were used.
ModelConfig load_config(const std::filesystem::path& path, std::vector<ConfigKey>& keys);

/// config.json being written, keys in the order of put().
class ConfigWriter {
 public:
  ConfigWriter();
  ConfigWriter(ConfigWriter&&) noexcept;
  ConfigWriter& operator=(ConfigWriter&&) noexcept;
  ~ConfigWriter();
  void put(const std::string& key, int value);
  void put(const std::string& key, double value);
  void put(const std::string& key, bool value);
  void put(const std::string& key, const char* value);
  void put(const std::string& key, const std::string& value) { put(key, value.c_str()); }
  void put(const std::string& key, const std::vector<std::string>& value);
  void put(const std::string& key, std::optional<std::int32_t> value);  ///< null where there is none
  void put(const std::string& key, const std::vector<int>& value);
  void put(const std::string& key, const std::vector<double>& value);
  void put_repeated(const std::string& key, const std::vector<std::string>& value);  ///< as repeated_texts() reads
  void put(const std::string& key, const ConfigWriter& value);
  static ConfigWriter parse(const std::string& json);  ///< what text() gave
  std::string text() const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

/// Upper bounds of what a configuration may claim: far above any published decoder, far below what would exhaust memory
/// before the weights are compared with it.
namespace config_limits {
inline constexpr int layers = 1024, heads = 1024, d_head = 8192, d_model = 1 << 17, d_mlp = 1 << 20, vocab = 1 << 24,
                     context = 1 << 28;
}

/// Names of activation functions as Hugging Face spells them.
Activation read_activation(const ConfigReader& json, const std::string& key, const std::string& fallback);
/// The name that read_activation reads as this.
std::string activation_name(Activation activation);

}  // namespace headscope
