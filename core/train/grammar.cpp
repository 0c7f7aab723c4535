#include "core/train/grammar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/error.h"
#include "core/base/nearest_names.h"
#include "core/base/nth.h"

namespace headscope {

extern const std::string_view embedded_stories_grammar;   // assets/stories.grammar
extern const std::string_view embedded_everyday_grammar;  // assets/everyday.grammar

namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  std::string joined;
  for (const char c : text)
    if (!is_blank(c))
      joined += c;
    else if (joined.back() != ' ')
      joined += ' ';
  return joined;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  std::string word;
  for (const char c : text) {
    if (!is_blank(c)) {
      word += c;
    } else if (!word.empty()) {
      found.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) found.push_back(word);
  return found;
}

/// A rule as it stands in the file: name, parameters, and the text after "=".
struct Source {
  std::string name, where;
  std::vector<std::string> parameters;
  std::string body;
};

std::vector<Source> split_rules(std::string_view text, const std::string& where) {
  std::vector<Source> sources;
  int line_number = 0;
  for (std::size_t at = 0; at < text.size();) {
    ++line_number;
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (trimmed(line).empty() || line.front() == '#') continue;
    const std::string here = fmt::format("{}: line {}", where, line_number);
    if (is_blank(line.front())) {
      if (sources.empty()) throw Error(here, "a rule before its continuation", trimmed(line).substr(0, 60));
      sources.back().body += ' ';
      sources.back().body += line;
      continue;
    }
    const auto equals = line.find('=');
    auto head = words(line.substr(0, equals));
    if (equals == std::string_view::npos || head.empty())
      throw Error(here, "rule parameters = text", trimmed(line).substr(0, 60));
    Source source{head.front(), here + ": " + head.front(), {head.begin() + 1, head.end()}, ""};
    source.body = line.substr(equals + 1);
    sources.push_back(std::move(source));
  }
  return sources;
}

/// Turns one alternative's text into items.
class BodyReader {
 public:
  BodyReader(std::string text, std::string where, const std::vector<Source>& rules)
      : text_(std::move(text)), where_(std::move(where)), rules_(rules) {}

  Grammar::Alternative read() {
    read_weight();
    while (skip_blanks(), peek() == '[') read_condition();
    while (at_ < text_.size()) read_item();
    flush();
    note_plain();
    return std::move(out_);
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blanks() {
    while (peek() == ' ') ++at_;
  }
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
    throw Error(where_, expected, fmt::format("'{}'", found.substr(0, 60)));
  }
  std::string until(char close) {
    const auto end = text_.find(close, at_);
    if (end == std::string::npos) refuse(fmt::format("a '{}'", close), text_.substr(at_));
    std::string inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }
  int slot(const std::string& name) const {
    if (name.size() != 1 || name[0] < 'a' || name[0] > 'z') refuse("a single letter a to z", name);
    return name[0] - 'a';
  }

  void read_weight() {
    if (peek() != '(') return;
    const std::string number = until(')');
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), out_.weight);
    if (error != std::errc{} || end != number.data() + number.size() || !(out_.weight > 0) || out_.weight > 1e6)
      refuse("a weight above 0", number);
  }
  void read_condition() {
    const std::string inside = until(']');
    const auto parts = words(inside);
    if (parts.size() == 2 && parts[0] == "last")
      out_.conditions.push_back({slot(parts[1])});
    else if (parts.size() > 2 && parts[1] == "is")
      out_.conditions.push_back({slot(parts[0]), 0, {parts.begin() + 2, parts.end()}});
    else if (inside.size() == 3 && inside[1] == '=' && inside[2] >= 'a' && inside[2] <= 'z')
      out_.conditions.push_back({slot(inside.substr(0, 1)), inside[2]});
    else
      refuse("[x=m], [x is word] or [last x]", inside);
  }
  void read_item() {
    const char c = peek();
    if (c == '<') return read_tag(until('>'));
    if (c == '{') {
      const std::string inside = until('}');
      if (inside.size() != 1 || inside[0] < 'a' || inside[0] > 'z') refuse("{m}, one letter", inside);
      Grammar::Item item{.kind = Grammar::ItemKind::feature};
      item.feature = inside[0];
      return push(std::move(item));
    }
    ++at_;
    if (c == '#') return push({.kind = Grammar::ItemKind::noun});
    if (c == '@' || c == '$') {
      Grammar::Item item{.kind = c == '@' ? Grammar::ItemKind::subject : Grammar::ItemKind::verb};
      if (peek() >= '1' && peek() <= '9') item.clause = text_[at_++] - '0';
      return push(std::move(item));
    }
    if (c == '>' || c == ']' || c == '}') refuse("a tag to be opened before it is closed", text_.substr(at_ - 1));
    if (c != '^') literal_ += c == '_' ? ' ' : c;
  }
  void read_tag(const std::string& inside) {
    using Kind = Grammar::ItemKind;
    auto parts = words(inside);
    if (parts.empty()) refuse("a tag", "<>");
    if (inside == "an") {
      skip_blanks();
      return push({.kind = Kind::article});
    }
    if (inside == "cap") return push({.kind = Kind::capital});
    Grammar::Item item;
    if (parts[0] == "pro") {
      if (parts.size() != 3) refuse("<pro x word>", inside);
      item.kind = Kind::pronoun;
      item.slot = slot(parts[1]);
      item.text = parts[2];
      return push(std::move(item));
    }
    if (parts.size() == 1 && parts[0].size() == 1) {
      item.kind = Kind::repeat;
      item.slot = slot(parts[0]);
      return push(std::move(item));
    }
    item.kind = Kind::call;
    if (const auto colon = parts[0].find(':'); colon != std::string::npos) {
      item.kind = Kind::draw;
      item.slot = slot(parts[0].substr(0, colon));
      parts[0].erase(0, colon + 1);
    }
    const auto rule = std::ranges::find(rules_, parts[0], &Source::name);
    if (rule == rules_.end()) {
      std::vector<std::string> names;
      for (const Source& each : rules_) names.push_back(each.name);
      throw Error(where_, "the name of a rule", fmt::format("'{}'", parts[0]), nearest_names_hint(parts[0], names));
    }
    item.rule = static_cast<int>(rule - rules_.begin());
    for (std::size_t i = 1; i < parts.size(); ++i) item.arguments.push_back(slot(parts[i]));
    if (item.arguments.size() != rule->parameters.size())
      refuse(fmt::format("{} arguments for {}", rule->parameters.size(), rule->name), inside);
    push(std::move(item));
  }
  void flush() {
    if (literal_.empty()) return;
    out_.items.push_back({.kind = Grammar::ItemKind::literal, .text = literal_});
    literal_.clear();
  }
  void push(Grammar::Item item) {
    flush();
    out_.items.push_back(std::move(item));
  }
  void note_plain() {
    for (const Grammar::Item& item : out_.items) {
      if (item.kind == Grammar::ItemKind::literal)
        out_.plain += item.text;
      else if (item.kind != Grammar::ItemKind::feature)
        return out_.plain.clear();
    }
  }

  std::string text_, where_;
  const std::vector<Source>& rules_;
  std::size_t at_ = 0;
  std::string literal_;
  Grammar::Alternative out_;
};

/// A grammar whose rules call themselves, or that draws inside a draw, is refused: every text then has an end, and
/// what is drawn has one text.
class CallChecker {
 public:
  CallChecker(const std::vector<Grammar::Rule>& rules, const std::vector<Source>& sources)
      : rules_(rules), sources_(sources), seen_(rules.size()) {}

  void check() {
    for (std::size_t i = 0; i < rules_.size(); ++i) visit(static_cast<int>(i));
  }

 private:
  struct Seen {
    bool open = false, done = false, draws = false;
  };
  bool visit(int index) {
    Seen& seen = nth(seen_, index);
    const std::string& where = nth(sources_, index).where;
    if (seen.open) throw Error(where, "rules that do not call themselves", "a circle");
    if (seen.done) return seen.draws;
    seen.open = true;
    for (const auto& alternative : nth(rules_, index).alternatives)
      for (const Grammar::Item& item : alternative.items) {
        if (item.rule < 0) continue;
        const bool inside = visit(item.rule);
        if (item.kind == Grammar::ItemKind::draw && inside) throw Error(where, "no draw inside a draw", "one");
        if (inside || item.kind == Grammar::ItemKind::draw) seen.draws = true;
      }
    seen.open = false;
    seen.done = true;
    return seen.draws;
  }

  const std::vector<Grammar::Rule>& rules_;
  const std::vector<Source>& sources_;
  std::vector<Seen> seen_;
};

}  // namespace

Grammar Grammar::parse(std::string_view text, const std::string& where) {
  Grammar grammar;
  std::vector<Source> sources = split_rules(text, where);
  const auto determiners = std::ranges::find(sources, "determiners", &Source::name);
  if (determiners != sources.end()) {
    for (std::string& word : words(determiners->body)) grammar.determiners_.insert(std::move(word));
    sources.erase(determiners);
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Source& source = sources[i];
    if (source.name.size() < 2 || !std::ranges::all_of(source.name, is_name_letter))
      throw Error(source.where, "a name of two or more lower-case letters", fmt::format("'{}'", source.name));
    for (std::size_t k = 0; k < i; ++k)
      if (sources[k].name == source.name) throw Error(source.where, "every rule once", "a second one of this name");
    Rule rule{.name = source.name, .parameters = {}, .alternatives = {}};
    for (const std::string& name : source.parameters) {
      if (name.size() != 1 || name[0] < 'a' || name[0] > 'z')
        throw Error(source.where, "parameters of one letter a to z", fmt::format("'{}'", name));
      rule.parameters.push_back(name[0] - 'a');
    }
    std::string_view rest = source.body;
    if (const std::string start = trimmed(rest); start.starts_with('|')) rest.remove_prefix(rest.find('|') + 1);
    while (true) {
      const auto bar = rest.find('|');
      rule.alternatives.push_back(BodyReader(trimmed(rest.substr(0, bar)), source.where, sources).read());
      if (bar == std::string_view::npos) break;
      rest.remove_prefix(bar + 1);
    }
    grammar.rules_.push_back(std::move(rule));
  }
  if (grammar.rules_.empty()) throw Error(where, "at least one rule", "none");
  CallChecker(grammar.rules_, sources).check();
  return grammar;
}

const Grammar& Grammar::stories() {
  static const Grammar grammar = parse(embedded_stories_grammar, "assets/stories.grammar");
  return grammar;
}

const std::vector<std::string>& Grammar::names() {
  static const std::vector<std::string> all = {"stories", "everyday"};
  return all;
}

const Grammar& Grammar::named(std::string_view name, const std::string& where) {
  if (name == "stories") return stories();
  if (name != "everyday")
    throw Error(where, fmt::format("one of the grammars {}", fmt::join(names(), ", ")), fmt::format("\"{}\"", name),
                nearest_names_hint(name, names()));
  static const Grammar everyday = parse(embedded_everyday_grammar, "assets/everyday.grammar");
  return everyday;
}

int Grammar::rule(std::string_view name) const {
  const auto found = std::ranges::find(rules_, name, &Rule::name);
  if (found == rules_.end()) throw Error("grammar", fmt::format("a rule '{}'", name), "none of this name");
  return static_cast<int>(found - rules_.begin());
}

}  // namespace headscope
