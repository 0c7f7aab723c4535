#pragma once
// A strict little XML reader for tests: throws on anything that is not well formed (tags out of order, unquoted
// attributes, raw < or &, unknown entities, characters XML 1.0 forbids, one id twice).

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace headscope::testing {

struct XmlElement {
  std::string name, text;  ///< text of the element and all inside it, entities resolved, <title> left out
  std::map<std::string, std::string> attributes;
};

class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : text_(text) {}

  std::vector<XmlElement> read() {
    while (at_ < text_.size()) text_[at_] == '<' ? tag() : characters();
    if (!open_.empty()) throw std::runtime_error("not closed: " + elements_[open_.back()].name);
    return std::move(elements_);
  }

 private:
  static constexpr const char* id_characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " at byte " + std::to_string(at_));
  }

  std::string resolved(std::string_view raw) {
    static const std::map<std::string, char, std::less<>> known{{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}};
    std::string out;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const auto c = static_cast<unsigned char>(raw[i]);
      if (c == '<') fail("raw <");
      if (c < 0x20 && c != '\n' && c != '\t' && c != '\r') fail("control character");
      if (c != '&') {
        out += raw[i];
        continue;
      }
      const std::size_t end = raw.find(';', i);
      if (end == std::string_view::npos) fail("raw &");
      const auto entity = known.find(raw.substr(i + 1, end - i - 1));
      if (entity == known.end()) fail("unknown entity");
      out += entity->second;
      i = end;
    }
    return out;
  }

  void characters() {
    const std::size_t end = std::min(text_.find('<', at_), text_.size());
    const std::string text = resolved(text_.substr(at_, end - at_));
    if (open_.empty() && text.find_first_not_of(" \n") != std::string::npos) fail("text outside the root");
    if (!open_.empty() && elements_[open_.back()].name == "title")
      elements_[open_.back()].text += text;
    else
      for (const std::size_t e : open_) elements_[e].text += text;
    at_ = end;
  }

  std::string name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-' || text_[at_] == ':'))
      ++at_;
    if (begin == at_) fail("a name was expected");
    return std::string(text_.substr(begin, at_ - begin));
  }

  void tag() {
    if (text_.substr(at_, 5) == "<?xml") {
      at_ = text_.find("?>", at_) + 2;
      return;
    }
    ++at_;
    if (text_[at_] == '/') {
      ++at_;
      if (open_.empty() || name() != elements_[open_.back()].name) fail("closing tag without its opening one");
      if (text_[at_++] != '>') fail("> was expected");
      open_.pop_back();
      return;
    }
    XmlElement element;
    element.name = name();
    while (text_[at_] == ' ') {
      ++at_;
      const std::string key = name();
      if (text_.substr(at_, 2) != "=\"") fail("=\" was expected");
      at_ += 2;
      const std::size_t end = text_.find('"', at_);
      if (end == std::string_view::npos) fail("attribute without end");
      if (!element.attributes.emplace(key, resolved(text_.substr(at_, end - at_))).second) fail("attribute twice");
      if (key == "id" && element.attributes[key].find_first_not_of(id_characters) != std::string::npos)
        fail("no id: " + element.attributes[key]);
      if (key == "id" && !ids_.insert(element.attributes[key]).second) fail("id twice: " + element.attributes[key]);
      at_ = end + 1;
    }
    const bool closed = text_[at_] == '/';
    at_ += closed;
    if (text_[at_++] != '>') fail("> was expected");
    elements_.push_back(std::move(element));
    if (!closed) open_.push_back(elements_.size() - 1);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<XmlElement> elements_;
  std::vector<std::size_t> open_;
  std::set<std::string> ids_;
};

inline std::vector<XmlElement> read_xml(std::string_view text) {
  return XmlReader(text).read();
}

}  // namespace headscope::testing
