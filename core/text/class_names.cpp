#include "core/text/class_names.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/nth.h"

namespace headscope {

namespace {
class ClassNames final : public Tokenizer {
 public:
  explicit ClassNames(std::vector<std::string> labels) : labels_(std::move(labels)) {}

  using Tokenizer::encode;
  std::vector<Token> encode(std::string_view text, Options) const override {
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const std::string& label = labels_[i];
      if (label != text && label.substr(0, label.find(',')) != text) continue;
      Token found = token(static_cast<std::int32_t>(i));
      found.begin = 0, found.end = static_cast<int>(text.size());
      return {found};
    }
    throw Error("text", "the name of a class: this model reads pictures", "\"" + excerpt(std::string(text)) + "\"");
  }
  Token token(std::int32_t id) const override {
    if (id < 0 || id >= vocab_size())
      throw Error("class", fmt::format("a number from 0 to {}", vocab_size() - 1), std::to_string(id));
    return {id, nth(labels_, id), nth(labels_, id)};
  }
  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string out;
    for (const std::int32_t id : ids) out += (out.empty() ? "" : "; ") + token(id).bytes;
    return out;
  }
  int vocab_size() const override { return static_cast<int>(labels_.size()); }
  std::optional<std::int32_t> bos() const override { return std::nullopt; }
  std::optional<std::int32_t> eos() const override { return std::nullopt; }
  bool adds_bos() const override { return false; }
  std::string describe() const override { return fmt::format("names of {} classes of pictures", labels_.size()); }

 private:
  std::vector<std::string> labels_;
};
}  // namespace

std::shared_ptr<const Tokenizer> class_names(std::vector<std::string> labels) {
  return std::make_shared<ClassNames>(std::move(labels));
}

}  // namespace headscope
