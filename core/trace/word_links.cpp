#include "core/trace/word_links.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/nth.h"
#include "core/base/utf8.h"
#include "core/trace/trace.h"
#include "core/trace/words.h"

namespace headscope {

extern const std::string_view embedded_word_kinds;  // assets/word_kinds.txt

namespace {

enum class Kind {
  other,  ///< a noun, for all that is known
  determiner,
  pronoun,
  preposition,
  conjunction,
  relative,
  auxiliary,
  verb,
  adverb,
  adjective,
  name,
  mark,  ///< punctuation, a special token, a line break
};

enum class Sex { unknown, man, woman };

constexpr std::size_t most_mentions = 32;  // of one person, the latest: links stay linear in a book
constexpr int longest_walk = 40;           // words that a rule looks back: linear in a text without punctuation

const std::unordered_map<std::string, std::vector<std::string>>& listed() {
  static const auto kinds = [] {
    std::unordered_map<std::string, std::vector<std::string>> found;  // of a word
    std::string kind;
    bool comment = false;
    std::string word;
    for (const char c : embedded_word_kinds) {
      if (c == '#') comment = true;
      if (!comment && c != ' ' && c != '\n') {
        word += c;
        continue;
      }
      if (!word.empty()) {
        if (word.back() == ':')
          kind = word.substr(0, word.size() - 1);
        else
          found[word].push_back(kind);
        word.clear();
      }
      if (c == '\n') comment = false;
    }
    return found;
  }();
  return kinds;
}

bool listed_as(const std::string& word, std::string_view kind) {
  const auto found = listed().find(word);
  return found != listed().end() && std::ranges::find(found->second, kind) != found->second.end();
}

bool any_code_point(std::string_view text, bool (*of)(std::int32_t)) {
  for (std::size_t i = 0; i < text.size();) {
    const auto c = valid_code_point_at(text, i);
    if (c && of(c->value)) return true;
    i += c ? static_cast<std::size_t>(c->length) : 1;
  }
  return false;
}

bool ends_sentence(std::int32_t c) {
  return std::u32string_view(U".!?…。！？؟।").find(static_cast<char32_t>(c)) != std::u32string_view::npos;
}
bool quotes(std::int32_t c) {
  return c == U'"' || c == U'“' || c == U'”';
}
bool is_english_letter(std::int32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
/// A letter of any script, what stands on one, or a digit: not what joins words, nor what joins or picks emoji.
bool makes_word(std::int32_t c) {
  return is_word(c) && !is_punctuation(c) && c != 0x200D && c != 0xFE0F;
}

struct Word {
  std::string text;  ///< in lower case, without the space before it
  KeyRange tokens;
  Kind kind = Kind::other;
  Sex sex = Sex::unknown;
  bool capital = false, ends_sentence = false, refers = false;  ///< refers: he, she, his …
  bool special = false;                                         ///< a token without bytes that is not a masked one
  int phrase = -1;                                              ///< noun phrase that it is of
};

/// Words [begin, end) that name one thing, of which `noun` is the word.
struct Phrase {
  int begin = 0, end = 0, noun = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const Token> tokens) : tokens_(tokens) {
    const WordGroups groups = word_groups(tokens);
    for (Index w = 0; w < groups.words(); ++w) words_.push_back(word_of(groups.tokens_of(w)));
  }

  WordLinks read() {
    WordLinks links;
    find_sentences(links);
    find_once(links);
    links.english = is_english();
    if (links.english) {
      tell_kinds();
      find_phrases();
      link_phrases();
      link_verbs();
      link_antecedents();
    }
    for (std::size_t r = 0; r < word_relations; ++r) links.relations[r] = listed_by_row(found_[r]);
    return links;
  }

 private:
  int count() const { return static_cast<int>(words_.size()); }
  const Word& at(int i) const { return nth(words_, i); }
  Kind kind(int i) const { return i >= 0 && i < count() ? at(i).kind : Kind::mark; }
  bool is(int i, Kind wanted) const { return kind(i) == wanted; }
  bool is_verb(int i) const { return is(i, Kind::verb) || is(i, Kind::auxiliary); }

  Word word_of(KeyRange range) const {
    Word word;
    word.tokens = range;
    std::string bytes;
    for (Index i = range.begin; i < range.end; ++i) bytes += nth(tokens_, i).bytes;
    const auto first = bytes.find_first_not_of(" \t\r\n");
    word.text = first == std::string::npos ? "" : bytes.substr(first);
    word.capital = !word.text.empty() && std::isupper(static_cast<unsigned char>(word.text.front()));
    for (char& c : word.text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!any_code_point(word.text, makes_word)) word.kind = Kind::mark;
    word.special = bytes.empty() && !nth(tokens_, range.begin).masked;
    word.ends_sentence = word.special || (word.kind == Kind::mark && any_code_point(bytes, ends_sentence));
    return word;
  }

  // A special token parts sentences, and is of none. Without bytes nothing is known of a text, or it is a picture.
  void find_sentences(WordLinks& links) const {
    if (std::ranges::all_of(tokens_, [](const Token& token) { return token.bytes.empty(); })) return;
    bool begins = true, open = false;
    for (const Word& word : words_) {
      if (word.special) {
        begins = true, open = false;
        continue;
      }
      // A mark begins none: one that closes a quotation belongs to what it closes.
      if (begins && word.kind != Kind::mark) {
        links.sentences.push_back(word.tokens);
        begins = false, open = true;
      }
      if (open) links.sentences.back().end = word.tokens.end;
      if (word.ends_sentence) begins = true;
    }
  }

  void find_once(WordLinks& links) const {
    std::unordered_map<std::string, int> counts;
    for (const Word& word : words_)
      if (word.kind != Kind::mark) ++counts[word.text];
    for (const Word& word : words_)
      if (word.kind != Kind::mark && counts[word.text] == 1)
        for (Index i = std::max<Index>(word.tokens.begin, 1); i < word.tokens.end; ++i)
          links.once.push_back(static_cast<std::int32_t>(i));
  }

  bool is_english() const {
    int words = 0, told = 0, the = 0, letters = 0, foreign = 0;
    std::set<std::string_view> different;
    for (const Word& word : words_) {
      if (word.kind == Kind::mark) continue;
      const int before = letters;
      for (std::size_t i = 0; i < word.text.size();) {
        const auto c = valid_code_point_at(word.text, i);
        const bool other = c && c->value >= 0x80 && makes_word(c->value);  // of another script, or with an accent
        letters += other || (c && is_english_letter(c->value));
        foreign += other;
        i += c ? static_cast<std::size_t>(c->length) : 1;
      }
      words += letters > before;  // a number is of every language
      if (!listed_as(word.text, "english")) continue;
      ++told;
      the += word.text == "the";
      different.insert(word.text);
    }
    if (20 * foreign > letters) return false;
    return (12 * told >= words && different.size() >= 2) || (8 * the >= words && the > 0);
  }

  /// What only its own neighbours on the left decide; left to right.
  void tell_kinds() {
    bool first = true;  // of a sentence: its capital says nothing
    for (int i = 0; i < count(); ++i) {
      Word& word = nth(words_, i);
      if (word.kind == Kind::mark) {
        if (word.ends_sentence || any_code_point(word.text, quotes)) first = true;
        continue;
      }
      word.kind = kind_of(i, word, std::exchange(first, false));
    }
  }

  Kind kind_of(int i, Word& word, bool first) {
    const auto as = [&](std::string_view kind) { return listed_as(word.text, kind); };
    const std::string next = i + 1 < count() ? at(i + 1).text : "";
    const bool noun_next = i + 1 < count() && at(i + 1).kind != Kind::mark &&
                           (!listed().contains(next) || listed_as(next, "adjective") || listed_as(next, "man") ||
                            listed_as(next, "woman") || listed_as(next, "verb"));
    for (const auto& [kind, sex] : {std::pair{"man-name", Sex::man}, {"woman-name", Sex::woman}})
      if (word.capital && as(kind)) return word.sex = sex, Kind::name;
    if (as("he") || as("him")) return word.refers = true, word.sex = Sex::man, Kind::pronoun;
    if (as("she") || as("herself")) return word.refers = true, word.sex = Sex::woman, Kind::pronoun;
    if (as("her") || as("possessive")) {
      word.refers = word.text == "her" || word.text == "his";
      if (word.refers) word.sex = word.text == "her" ? Sex::woman : Sex::man;
      return as("possessive") || noun_next ? Kind::determiner : Kind::pronoun;
    }
    const bool in_phrase = is(i - 1, Kind::determiner) || is(i - 1, Kind::adjective);
    if (as("that")) return is(i - 1, Kind::other) || is(i - 1, Kind::name) ? Kind::relative : Kind::conjunction;
    if (as("relative") && (!first || !is(i - 1, Kind::mark))) return Kind::relative;
    if (as("determiner") || as("number")) return Kind::determiner;
    if (as("pronoun") || as("object")) return Kind::pronoun;
    if (as("auxiliary")) return Kind::auxiliary;
    if (as("conjunction")) return Kind::conjunction;
    if (as("to")) return listed_as(next, "verb") && !listed_as(next, "adjective") ? Kind::adverb : Kind::preposition;
    if (as("preposition") && !in_phrase) return Kind::preposition;
    if (as("adverb") && !in_phrase) return Kind::adverb;
    // "a painted box", "her left hand": behind an article no verb stands.
    if ((as("verb") || as("speech")) && !in_phrase) return Kind::verb;
    if (as("adjective")) return Kind::adjective;
    if (as("man")) return word.sex = Sex::man, Kind::other;
    if (as("woman")) return word.sex = Sex::woman, Kind::other;
    if (!in_phrase && word.text.size() >= 5 && word.text.ends_with("ed")) return Kind::verb;
    for (const char* ending : {"ful", "ous", "less", "able", "ible", "ive", "ish"})
      if (word.text.size() > 5 && word.text.ends_with(ending)) return Kind::adjective;
    if (word.text.size() > 4 && word.text.ends_with("ly") && !in_phrase) return Kind::adverb;
    return word.capital && !first ? Kind::name : Kind::other;
  }

  void find_phrases() {
    for (int i = 0; i < count();) {
      Phrase phrase{i, i, -1};
      if (is(i, Kind::pronoun) || is(i, Kind::name)) {
        phrase.noun = i++;
      } else {
        while (is(i, Kind::determiner)) ++i;
        while (is(i, Kind::adjective) || is(i, Kind::other)) {
          if (is(i, Kind::other)) phrase.noun = i;
          ++i;
        }
        // "the market day": up to three nouns; more is no phrase that these rules understand.
        if (phrase.noun >= 0 && phrase.noun - phrase.begin > 5) phrase.noun = -1;
        if (i == phrase.begin) {
          ++i;
          continue;
        }
      }
      phrase.end = i;
      if (phrase.noun < 0) continue;
      for (int w = phrase.begin; w < phrase.end; ++w) nth(words_, w).phrase = static_cast<int>(phrases_.size());
      phrases_.push_back(phrase);
    }
  }

  void link(WordRelation relation, int from, int to) {
    if (from != to) found_[static_cast<std::size_t>(relation)][at(from).tokens.end - 1].push_back(to);
  }

  void link_phrases() {
    for (const Phrase& phrase : phrases_) {
      if (!is(phrase.noun, Kind::pronoun)) {
        if (is(phrase.begin, Kind::determiner)) link(WordRelation::determiner, phrase.noun, phrase.begin);
        for (int w = phrase.begin; w < phrase.noun; ++w)
          if (is(w, Kind::adjective)) link(WordRelation::adjective, w, phrase.noun);
      }
      if (is(phrase.begin - 1, Kind::preposition)) {
        link(WordRelation::preposition_object, phrase.begin - 1, phrase.noun);
        link(WordRelation::object_preposition, phrase.noun, phrase.begin - 1);
      }
      const int verb = phrase.begin - 1;
      if (is(verb, Kind::verb) && !listed_as(at(verb).text, "speech") && !is(phrase.end, Kind::auxiliary) &&
          !is(phrase.end, Kind::verb))
        link(WordRelation::object, phrase.noun, verb);
    }
  }

  /// The phrase that ends right before word i, of "the people of Zoziford" the people; −1 = none.
  int phrase_before(int i) const {
    int found = i > 0 ? at(i - 1).phrase : -1;
    while (found >= 0 && i - nth(phrases_, found).begin < longest_walk &&
           is(nth(phrases_, found).begin - 1, Kind::preposition)) {
      const int before = nth(phrases_, found).begin - 2;
      found = before >= 0 ? at(before).phrase : -1;
    }
    return found;
  }

  std::optional<int> subject_of(int verb) const {
    int i = verb;
    while (is(i - 1, Kind::adverb)) {
      if (at(i - 1).text == "to") return std::nullopt;  // nobody's in particular
      --i;
    }
    if (is(i - 1, Kind::auxiliary)) return nth(subjects_, i - 1);
    if (is(i - 1, Kind::relative)) {
      const int noun = phrase_before(i - 1 - (i >= 2 && at(i - 2).text == ","));
      return noun < 0 ? std::nullopt : std::optional(nth(phrases_, noun).noun);
    }
    if (i >= 1 && (at(i - 1).text == "and" || at(i - 1).text == "or")) {
      for (int before = i - 2; before >= std::max(0, i - longest_walk) && !at(before).ends_sentence; --before)
        if (is_verb(before)) return nth(subjects_, before);
      return std::nullopt;
    }
    // Behind a relative clause, which has a verb of its own: "The key that I lost is", "Anna, who knew Ben, sold".
    const bool comma = i >= 1 && at(i - 1).text == ",";
    if (comma || is_verb(i - 1) || (i >= 1 && at(i - 1).phrase >= 0)) {
      bool verb_inside = false, commas = false;
      const int from = std::max(1, i - longest_walk);
      for (int w = i - 1 - comma; w >= from && !at(w).ends_sentence && !is(w, Kind::conjunction); --w) {
        if (is_verb(w)) verb_inside = true;
        if (at(w).text == ",") commas = true;
        if (!is(w, Kind::relative)) continue;
        const bool set_off = at(w - 1).text == ",";
        if (!verb_inside || set_off != comma || (commas && !set_off)) break;
        const int noun = phrase_before(w - set_off);
        return noun < 0 ? std::nullopt : std::optional(nth(phrases_, noun).noun);
      }
    }
    const int noun = comma ? -1 : phrase_before(i);
    if (noun < 0) return std::nullopt;
    const Phrase& phrase = nth(phrases_, noun);
    // What another verb has as its object is not the subject of the next one.
    if (is_verb(phrase.begin - 1)) return std::nullopt;
    return phrase.noun;
  }

  void link_verbs() {
    subjects_.resize(words_.size());
    for (int i = 0; i < count(); ++i) {
      if (!is_verb(i)) continue;
      nth(subjects_, i) = subject_of(i);
      if (nth(subjects_, i)) link(WordRelation::subject, i, *nth(subjects_, i));
    }
  }

  void link_antecedents() {
    std::unordered_map<std::string, std::vector<int>> men, women;  // mentions, by name or noun
    std::map<Sex, std::vector<int>*> last;                         // who was mentioned last, of each sex
    for (int i = 0; i < count(); ++i) {
      const Word& word = at(i);
      if (word.sex == Sex::unknown) continue;
      if (word.refers) {
        const auto who = last.find(word.sex);
        if (who == last.end()) continue;
        std::vector<int>& mentions = *who->second;
        for (std::size_t m = mentions.size() - std::min(mentions.size(), most_mentions); m < mentions.size(); ++m)
          link(WordRelation::antecedent, i, mentions[m]);
        mentions.push_back(i);
        continue;
      }
      std::vector<int>& mentions = (word.sex == Sex::man ? men : women)[word.text];  // stays where it is
      mentions.push_back(i);
      last[word.sex] = &mentions;
    }
  }

  TokenLinks::List listed_by_row(const std::map<Index, std::vector<int>>& found) const {
    TokenLinks::List list;
    for (Index row = 0; row < static_cast<Index>(tokens_.size()); ++row) {
      const auto begin = list.keys.size();
      list.begin.push_back(static_cast<std::int32_t>(begin));
      if (const auto words = found.find(row); words != found.end())
        for (const int word : words->second)
          for (Index key = at(word).tokens.begin; key < at(word).tokens.end; ++key)
            list.keys.push_back(static_cast<std::int32_t>(key));
      const auto from = list.keys.begin() + static_cast<std::ptrdiff_t>(begin);
      std::sort(from, list.keys.end());
      list.keys.erase(std::unique(from, list.keys.end()), list.keys.end());
      list.count.push_back(static_cast<std::int32_t>(list.keys.size() - begin));
    }
    return list;
  }

  std::span<const Token> tokens_;
  std::vector<Word> words_;
  std::vector<Phrase> phrases_;
  std::vector<std::optional<int>> subjects_;                             // by verb
  std::array<std::map<Index, std::vector<int>>, word_relations> found_;  // by token, words
};

}  // namespace

WordLinks word_links(std::span<const Token> tokens) {
  return Reader(tokens).read();
}

std::string_view title_of(WordRelation relation) {
  static constexpr std::string_view titles[] = {"verb → subject",         "noun → determiner",  "adjective → noun",
                                                "preposition → noun",     "noun → preposition", "object → verb",
                                                "pronoun → whom it means"};
  return titles[static_cast<std::size_t>(relation)];
}

}  // namespace headscope
