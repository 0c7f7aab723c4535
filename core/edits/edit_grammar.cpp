#include "core/edits/edit_grammar.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <span>
#include <utility>

#include "core/attention/masks.h"
#include "core/attention/mechanism.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/edit.h"
#include "core/edits/edit_field.h"

namespace headscope {

namespace {

using Kind = EditField::Kind;
using Part = EditPart::Kind;

bool is_capital(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_field(std::string_view word) {
  return is_capital(word.front()) || (word.front() == '"' && word.size() > 2 && is_capital(word[1]));
}

/// Reads a form's grammar. "A | B" are alternatives of all that stands between brackets, of which the words before the
/// first one's last belong to all; "a|b" in one word are alternatives of this word.
class GrammarReader {
 public:
  using Describe = std::function<EditField(std::string_view name)>;
  GrammarReader(std::string_view form, int& next_id, Describe describe)
      : next_id_(next_id), describe_(std::move(describe)) {
    for (std::size_t i = 0; i < form.size();) {
      if (form[i] == ' ') {
        ++i;
      } else if (form[i] == '[' || form[i] == ']') {
        tokens_.push_back(form.substr(i++, 1));
      } else {
        const auto end = std::min(form.find_first_of(" []", i), form.size());
        tokens_.push_back(form.substr(i, end - i));
        i = end;
      }
    }
  }
  EditPart read() { return group(); }

 private:
  EditPart group() {
    std::vector<EditPart> alternatives{sequence()};
    while (at_ < tokens_.size() && tokens_[at_] == "|") {
      ++at_;
      alternatives.push_back(sequence());
    }
    if (alternatives.size() == 1) return std::move(alternatives.front());
    EditPart all{Part::sequence};
    auto& first = alternatives.front().parts;
    std::move(first.begin(), first.end() - 1, std::back_inserter(all.parts));
    first.erase(first.begin(), first.end() - 1);
    all.parts.push_back(choice(std::move(alternatives)));
    return all;
  }

  EditPart sequence() {
    EditPart out{Part::sequence};
    while (at_ < tokens_.size() && tokens_[at_] != "|" && tokens_[at_] != "]") {
      const std::string_view word = tokens_[at_++];
      if (word == "[") {
        EditPart inner = group();
        if (at_ < tokens_.size()) ++at_;  // the ]
        EditPart optional{Part::optional, next_id_++};
        optional.title = title_of(inner.parts);
        // Which token stands for which has to be said of any other text, "start" unless it is.
        optional.always = optional.title == "aligned";
        optional.parts = std::move(inner.parts);
        out.parts.push_back(std::move(optional));
      } else if (is_field(word)) {
        std::string name(word);
        std::erase(name, '"');
        if (at_ < tokens_.size() && tokens_[at_] == "…") name += " …", ++at_;
        out.parts.push_back(field(describe_(name)));
      } else if (word.find('|') != std::string_view::npos) {
        std::vector<EditPart> alternatives;
        for (std::size_t begin = 0; begin <= word.size();) {
          const auto end = std::min(word.find('|', begin), word.size());
          alternatives.push_back({Part::sequence});
          alternatives.back().parts.push_back(literal(word.substr(begin, end - begin)));
          begin = end + 1;
        }
        out.parts.push_back(choice(std::move(alternatives)));
      } else {
        out.parts.push_back(literal(word));
      }
    }
    return out;
  }

  EditPart choice(std::vector<EditPart> alternatives) {
    EditPart out{Part::choice, next_id_++};
    for (EditPart& each : alternatives) {
      if (each.parts.empty()) continue;
      if (each.parts.front().kind != Part::choice) {
        each.title = title_of(each.parts);
        out.parts.push_back(std::move(each));
        continue;
      }
      // "linear|ntk FACTOR": an alternative for each word, with the same field behind it.
      const EditPart words = std::move(each.parts.front());
      for (const EditPart& word : words.parts) {
        EditPart one = each;
        one.parts.erase(one.parts.begin());
        one.parts.insert(one.parts.begin(), word.parts.begin(), word.parts.end());
        one.title = word.title;
        out.parts.push_back(std::move(one));
      }
    }
    return out;
  }
  static std::string title_of(const std::vector<EditPart>& parts) {
    std::string title;
    for (const EditPart& part : parts)
      if (part.kind == Part::word) title += (title.empty() ? "" : " ") + part.text;
    return title.empty() && parts.front().kind == Part::field ? parts.front().field.title : title;
  }

  static EditPart literal(std::string_view word) {
    EditPart out{Part::word};
    out.text = word;
    return out;
  }
  EditPart field(EditField what) {
    EditPart out{Part::field, next_id_++};
    out.field = std::move(what);
    return out;
  }

  std::vector<std::string_view> tokens_;
  std::size_t at_ = 0;
  int& next_id_;
  Describe describe_;
};

/// Capitals of a mask's form: letters for numbers, "A,B,…" for positions, "QUERY:KEY …" for cells.
EditField mask_field(const MaskForm& mask, std::string_view name) {
  EditField field{Kind::whole, std::string(name), std::string(name), ""};
  if (name.size() > 1) {
    field.kind = name.ends_with(" …") ? Kind::line : Kind::word;
    return field;
  }
  const bool share = mask.predicate.find("probability " + std::string(name)) != std::string_view::npos;
  if (share) field.kind = Kind::number;
  field.high = share ? 1 : 64;
  return field;
}

bool parses(const std::string& spec) {
  try {
    parse_mask(spec);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Every mask of the catalogue, and one written by hand: several joined.
EditPart mask_choice(int& next_id) {
  EditPart out{Part::choice, next_id++};
  for (const MaskForm& mask : mask_forms()) {
    EditPart one =
        GrammarReader(mask.form, next_id, [&](std::string_view name) { return mask_field(mask, name); }).read();
    one.title = mask.title;
    one.meaning = mask.meaning;
    const EditAnswers shown = answers_in(one, mask.example, {}).value_or(EditAnswers{});
    for (EditPart& part : one.parts) {
      if (part.kind != Part::field) continue;
      part.field.usual = shown.contains(part.id) ? shown.at(part.id) : "1";
      if (part.field.kind != Kind::whole) continue;
      EditAnswers least = shown;  // the mask itself says from where on its numbers count
      for (int low = 0; low <= 4; ++low) {
        least[part.id] = std::to_string(low);
        part.field.low = low;
        if (parses(words_of(one, least))) break;
      }
    }
    out.parts.push_back(std::move(one));
  }
  EditPart written{Part::sequence};
  written.title = to_say("In words");
  written.meaning =
      to_say("Masks joined: \"A & B\" shows what both show, \"A | B\" what either shows, \"not A\" the rest.");
  EditPart line{Part::field, next_id++};
  line.field = {Kind::line,
                "SPEC",
                to_say("Mask"),
                "as in window 4 | cells 9:2",
                0,
                0,
                false,
                {},
                "window 4 | global 1 window 1"};
  written.parts.push_back(std::move(line));
  out.parts.push_back(std::move(written));
  return out;
}

EditField mechanism_field(const MechanismParameter& p) {
  EditField field{
      Kind::number, std::string(p.name),   std::string(p.title), std::string(p.words), p.low, p.high, p.logarithmic,
      {},           value_text(p, p.usual)};
  for (const std::string_view each : p.choices) field.choices.emplace_back(each);
  switch (p.kind) {
    case MechanismParameter::Kind::number:
      break;
    case MechanismParameter::Kind::whole:
      field.kind = Kind::whole;
      break;
    case MechanismParameter::Kind::choice:
      field.kind = Kind::choice;
      field.low = field.high = 0;
      break;
    case MechanismParameter::Kind::toggle:
      field.kind = Kind::toggle;
      field.low = field.high = 0;
      field.choices = {value_text(p, 0), value_text(p, 1)};
      break;
  }
  return field;
}

/// Every mechanism that can take the place of softmax, with all of its values.
EditPart mechanism_choice(int& next_id) {
  EditPart out{Part::choice, next_id++};
  for (const Mechanism& mechanism : mechanisms()) {
    if (mechanism.study) continue;
    EditPart one{Part::sequence};
    one.title = mechanism.title;
    one.meaning = mechanism.meaning;
    one.group = mechanism.group;
    one.parts.push_back({Part::word, -1, std::string(mechanism.id)});
    for (const MechanismParameter& p : mechanism.parameters) {
      one.parts.push_back({Part::word, -1, std::string(p.name) + "=", true});
      one.parts.push_back({Part::field, next_id++});
      one.parts.back().field = mechanism_field(p);
    }
    out.parts.push_back(std::move(one));
  }
  return out;
}

/// The field that capitals stand for; a plain box where nothing is known of them.
EditField field_named(const EditForm& form, std::string_view name) {
  static const std::vector<EditField> of_any{
      {Kind::text, "TEXT", to_say("Other text"), to_say("what the values are taken from")},
      {Kind::word,
       "I:J,…",
       to_say("Pairs"),
       to_say("position here:position there, separated by commas"),
       0,
       0,
       false,
       {},
       "0:0"},
      {Kind::whole, "SEED", to_say("Seed"), to_say("another number, another draw"), 1, 100, false, {}, "1"}};
  for (const std::vector<EditField>* fields : {&form.fields, &of_any})
    if (const auto found = std::ranges::find(*fields, name, &EditField::name); found != fields->end()) return *found;
  EditField unknown{Kind::word, std::string(name), std::string(name), ""};
  if (name.ends_with("…")) unknown.kind = Kind::line;
  if (name.find(',') != std::string_view::npos) unknown.kind = Kind::word;
  return unknown;
}

EditPart grammar(const EditForm& form) {
  int next_id = 0;
  EditPart root =
      GrammarReader(form.form, next_id, [&](std::string_view name) { return field_named(form, name); }).read();
  for (std::size_t i = 0; i < root.parts.size(); ++i) {
    if (root.parts[i].kind != Part::field) continue;
    if (root.parts[i].field.name == "SPEC") root.parts[i] = mask_choice(next_id);
    if (root.parts[i].field.name == "ID") {
      root.parts.resize(i);
      root.parts.push_back(mechanism_choice(next_id));
    }
  }
  return root;
}

/// The trees of all forms, in the order of edit_forms().
const std::vector<EditPart>& trees() {
  static const std::vector<EditPart> all = [] {
    std::vector<EditPart> grown;
    for (const EditForm& form : edit_forms()) grown.push_back(grammar(form));
    return grown;
  }();
  return all;
}

void put_usual(const EditPart& part, EditAnswers& answers) {
  if (part.kind == Part::field) answers[part.id] = part.field.usual;
  if (part.kind == Part::choice) answers[part.id] = "0";
  if (part.kind == Part::optional) answers[part.id] = part.always ? "1" : "";
  for (const EditPart& each : part.parts) put_usual(each, answers);
}

// ---- lines

/// Words of a line against pieces of a form, one after another; goes back where a choice turns out wrong.
class LineReader {
 public:
  using Todo = std::vector<const EditPart*>;  ///< what is still to come, last first

  static bool match(Todo todo, std::string_view rest, EditAnswers& answers) {
    if (todo.empty()) return rest.find_first_not_of(' ') == std::string_view::npos;
    const EditPart& part = *todo.back();
    todo.pop_back();
    switch (part.kind) {
      case Part::word:
        return take_word(part, rest) && match(std::move(todo), rest, answers);
      case Part::field: {
        std::string value;
        if (!take_value(part.field, rest, value)) return false;
        answers[part.id] = value;
        return match(std::move(todo), rest, answers);
      }
      case Part::sequence:
        return match(with(todo, part.parts), rest, answers);
      case Part::optional: {
        EditAnswers there = answers;
        there[part.id] = "1";
        if (match(with(todo, part.parts), rest, there)) {
          answers = std::move(there);
          return true;
        }
        if (part.always) {
          for (const EditPart& each : part.parts)
            if (each.kind == Part::choice) answers[each.id] = "0";
        } else {
          answers[part.id] = "";
        }
        return match(std::move(todo), rest, answers);
      }
      case Part::choice:
        for (std::size_t i = 0; i < part.parts.size(); ++i) {
          EditAnswers chosen = answers;
          chosen[part.id] = std::to_string(i);
          Todo next = todo;
          next.push_back(&part.parts[i]);
          if (!match(std::move(next), rest, chosen)) continue;
          answers = std::move(chosen);
          return true;
        }
        return false;
    }
    return false;
  }

 private:
  static Todo with(Todo todo, const std::vector<EditPart>& parts) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) todo.push_back(&*part);
    return todo;
  }
  static void skip(std::string_view& rest) { rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size())); }
  static bool take_word(const EditPart& word, std::string_view& rest) {
    skip(rest);
    if (!rest.starts_with(word.text)) return false;
    rest.remove_prefix(word.text.size());
    return word.glued || rest.empty() || rest.front() == ' ';
  }
  static bool take_value(const EditField& field, std::string_view& rest, std::string& value) {
    skip(rest);
    if (rest.empty()) return false;
    if (field.kind == Kind::text) {
      std::size_t end = 1;
      while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
      if (rest.front() != '"' || end >= rest.size()) return false;
      const auto text = nlohmann::json::parse(rest.substr(0, end + 1), nullptr, false);
      if (!text.is_string()) return false;
      value = text.get<std::string>();
      rest.remove_prefix(end + 1);
      return true;
    }
    const auto end = field.kind == Kind::line ? rest.size() : std::min(rest.find(' '), rest.size());
    value = rest.substr(0, end);
    rest.remove_prefix(end);
    switch (field.kind) {
      case Kind::number:
      case Kind::whole:
      case Kind::position: {
        double number = 0;
        const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        return error == std::errc() && stop == value.data() + value.size();
      }
      case Kind::choice:
      case Kind::toggle:
        return std::ranges::count(field.choices, value) == 1;
      default:
        return true;
    }
  }
};

void write(const EditPart& part, const EditAnswers& answers, bool& glued, std::string& line) {
  const auto put = [&](const std::string& word) {
    line += (line.empty() || glued ? "" : " ") + word;
    glued = false;
  };
  const auto answer = [&] {
    const auto found = answers.find(part.id);
    return found == answers.end() ? std::string() : found->second;
  };
  switch (part.kind) {
    case Part::word:
      put(part.text);
      glued = part.glued;
      return;
    case Part::field:
      return put(part.field.kind == Kind::text
                     ? nlohmann::json(answer()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                     : answer());
    case Part::optional:
      if (!part.always && answer().empty()) return;
      break;
    case Part::choice:
      return write(part.parts[chosen(part, answers)], answers, glued, line);
    case Part::sequence:
      break;
  }
  for (const EditPart& each : part.parts) write(each, answers, glued, line);
}

}  // namespace

const EditPart& grammar_of(const EditForm& form) {
  const auto forms = edit_forms();
  const auto found = std::ranges::find(forms, &form, [](const EditForm& each) { return &each; });
  return nth(trees(), found - forms.begin());
}

std::size_t chosen(const EditPart& choice, const EditAnswers& answers) {
  std::size_t index = 0;
  if (const auto found = answers.find(choice.id); found != answers.end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), index);
  return std::min(index, choice.parts.size() - 1);
}

std::string words_of(const EditPart& part, const EditAnswers& answers) {
  std::string line;
  bool glued = false;
  write(part, answers, glued, line);
  return line;
}

std::optional<EditAnswers> answers_in(const EditPart& part, std::string_view words, EditAnswers before) {
  if (!LineReader::match({&part}, words, before)) return std::nullopt;
  return before;
}

EditAnswers answers_of(const EditAction& action, EditAnswers before) {
  auto answers = answers_in(grammar_of(form_of(action)), text_of(action), before);
  return answers ? std::move(*answers) : std::move(before);
}

EditAnswers usual_answers(const EditForm& form) {
  EditAnswers answers;
  put_usual(grammar_of(form), answers);
  return answers_of(form.usual, std::move(answers));
}

}  // namespace headscope
