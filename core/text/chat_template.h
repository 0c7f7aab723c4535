#pragma once
// A conversation as the text that an instruction-tuned model was trained to read: each such model comes with a template
// (Jinja) that puts its own marks around what the system, the user and the assistant say. The text holds the names of
// special tokens, and begins with that of the model's first one where it wants it: read it with special tokens, and put
// nothing before it.

#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace headscope {

struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant"
  std::string content;
  bool operator==(const ChatMessage&) const = default;
};

class ChatTemplate {
 public:
  /// Names of special tokens as templates know them: ("bos_token", "<s>") …
  using Specials = std::vector<std::pair<std::string, std::string>>;
  /// Throws Error at `where`, naming the line, on what is no template that can be read.
  ChatTemplate(const std::string& source, std::string where, Specials specials);

  struct Options {
    bool answer_follows = true;  ///< ends with the mark after which the assistant speaks (add_generation_prompt)
    std::time_t now = std::time(nullptr);  ///< for templates that tell the model the date
  };
  /// Throws Error when the template refuses the conversation (its own words: most want user and assistant in turns, and
  /// some no system), or does not come to an end.
  std::string render(std::span<const ChatMessage> messages, Options options) const;
  std::string render(std::span<const ChatMessage> messages) const { return render(messages, Options{}); }
  const std::string& where() const { return where_; }  ///< the file that it is from

 private:
  struct Parsed;
  std::shared_ptr<const Parsed> parsed_;
  Specials specials_;
  std::string where_;
};

/// Of a model's path (core/io/model_location.h): chat_template.jinja of its folder, else "chat_template" of
/// tokenizer_config.json (one, or the one called "default" of several), or tokenizer.chat_template of a GGUF file.
/// Nullopt when there is none: then the model continues texts. Throws Error on a broken one.
std::optional<ChatTemplate> load_chat_template(const std::filesystem::path& model);

}  // namespace headscope
