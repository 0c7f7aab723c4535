#include "core/train/translation.h"

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace headscope {

namespace {

struct Noun {
  const char *one, *many, *stem;
  bool second;  // of the second class
};
constexpr Noun nouns[] = {
    {"dog", "dogs", "vel", false},      {"cat", "cats", "mir", true},        {"bird", "birds", "tark", false},
    {"horse", "horses", "son", true},   {"child", "children", "pik", false}, {"woman", "women", "lan", true},
    {"man", "men", "dor", false},       {"girl", "girls", "fen", true},      {"boy", "boys", "ras", false},
    {"tree", "trees", "gul", true},     {"house", "houses", "bam", false},   {"river", "rivers", "sil", true},
    {"stone", "stones", "kern", false}, {"apple", "apples", "tuv", true},    {"boat", "boats", "jel", false},
    {"star", "stars", "nim", true},     {"king", "kings", "orb", false},     {"garden", "gardens", "wen", true},
    {"wolf", "wolves", "zur", false},   {"mouse", "mice", "lip", true}};

struct Verb {
  const char *one, *many, *past, *stem;
};
constexpr Verb verbs[] = {{"sees", "see", "saw", "sek"},
                          {"hears", "hear", "heard", "hul"},
                          {"finds", "find", "found", "tap"},
                          {"loves", "love", "loved", "mel"},
                          {"follows", "follow", "followed", "dren"},
                          {"paints", "paint", "painted", "kol"},
                          {"carries", "carry", "carried", "pes"},
                          {"helps", "help", "helped", "yam"},
                          {"draws", "draw", "drew", "brin"},
                          {"knows", "know", "knew", "gav"}};

struct Word {
  const char *source, *target;  // of words that agree with a noun: the stem
};
constexpr Word adjectives[] = {{"small", "min"}, {"big", "gar"},   {"red", "fur"},    {"old", "yen"},  {"young", "kil"},
                               {"white", "bel"}, {"black", "nog"}, {"quick", "sarp"}, {"kind", "dul"}, {"wet", "fos"}};
constexpr Word prepositions[] = {{"in", "en"}, {"near", "ip"}, {"behind", "ud"}, {"under", "az"}};
constexpr Word adverbs[] = {{"today", "nun"}, {"again", "rei"}, {"often", "opt"}, {"alone", "sul"}};

struct Article {
  const char *one, *many, *stem;
};
constexpr Article articles[] = {{"the", "the", "k"}, {"a", "some", "m"}, {"this", "these", "s"}};

template <class T, std::size_t n>
const T& any(const T (&of)[n], Random& random) {
  return of[random.below(n)];
}

bool chance(Random& random, double probability) {
  return random.uniform() < probability;
}

struct NounPhrase {
  const Noun* noun = nullptr;
  const Article* article = nullptr;
  const Word* adjective = nullptr;  // or none
  bool many = false;

  static NounPhrase draw(Random& random) {
    NounPhrase out;
    out.noun = &any(nouns, random);
    out.article = &any(articles, random);
    if (chance(random, 0.45)) out.adjective = &any(adjectives, random);
    out.many = chance(random, 0.5);
    return out;
  }
  std::string agreeing(std::string_view stem) const {
    return std::string(stem) + (noun->second ? "a" : "o") + (many ? "r" : "");
  }
};

std::string verb_in(const Verb& verb, bool many, bool past) {
  return std::string(verb.stem) + (past ? "u" : "i") + (many ? "r" : "");
}

bool vowel(char letter) {
  return std::string_view("aeiou").find(letter) != std::string_view::npos;
}

/// Where the words of a phrase stand in the source.
struct Said {
  int article = 0, adjective = -1, noun = 0;
};

Said say(const NounPhrase& phrase, std::vector<std::string>& source) {
  Said at;
  const auto put = [&](std::string word) {
    source.push_back(std::move(word));
    return static_cast<int>(source.size()) - 1;
  };
  std::string article = phrase.many ? phrase.article->many : phrase.article->one;
  const std::string noun = phrase.many ? phrase.noun->many : phrase.noun->one;
  if (article == "a" && vowel(phrase.adjective ? phrase.adjective->source[0] : noun[0])) article = "an";
  at.article = put(article);
  if (phrase.adjective) at.adjective = put(phrase.adjective->source);
  at.noun = put(noun);
  return at;
}

/// Words of the target, each with what it stands for and, maybe, what it agrees with.
class IntoTarget {
 public:
  explicit IntoTarget(Translation& into) : into_(into) {}
  void word(std::string word, int of, int agrees_with = -1) {
    const int at = static_cast<int>(into_.target.size());
    into_.target.push_back(std::move(word));
    into_.known.sure.insert({of, at});
    into_.known.possible.insert({of, at});
    if (agrees_with >= 0) into_.known.possible.insert({agrees_with, at});
  }
  void phrase(const NounPhrase& phrase, const Said& at) {
    word(phrase.agreeing(phrase.article->stem), at.article, at.noun);
    word(phrase.agreeing(phrase.noun->stem), at.noun);
    if (phrase.adjective) word(phrase.agreeing(phrase.adjective->target), at.adjective, at.noun);
  }

 private:
  Translation& into_;
};

std::string spoken(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

std::string Translation::source_text() const {
  return spoken(source);
}
std::string Translation::target_text() const {
  return spoken(target);
}

bool Translation::held_out() const {
  std::uint64_t sum = 0;  // of all letters, so that no word by itself decides
  for (const char letter : source_text()) sum = Random(sum + static_cast<unsigned char>(letter)).next();
  return sum % 7 == 0;
}

std::vector<TextSpan> spans_of(const std::vector<std::string>& words) {
  std::vector<TextSpan> spans;
  std::size_t at = 0;
  for (const std::string& word : words) {
    spans.push_back({at, at + word.size()});
    at += word.size() + 1;
  }
  return spans;
}

Translation draw_translation(Random& random) {
  const NounPhrase subject = NounPhrase::draw(random), object = NounPhrase::draw(random);
  const Verb& verb = any(verbs, random);
  const bool past = chance(random, 0.5);
  std::optional<NounPhrase> place;
  const Word* preposition = nullptr;
  if (chance(random, 0.4)) place = NounPhrase::draw(random), preposition = &any(prepositions, random);
  const Word* const adverb = chance(random, 0.4) ? &any(adverbs, random) : nullptr;

  Translation out;
  std::vector<std::string>& source = out.source;
  const auto put = [&](const char* word) {
    source.emplace_back(word);
    return static_cast<int>(source.size()) - 1;
  };
  const Said subject_at = say(subject, source);
  const int verb_at = put(past ? verb.past : subject.many ? verb.many : verb.one);
  const Said object_at = say(object, source);
  const int preposition_at = place ? put(preposition->source) : -1;
  const Said place_at = place ? say(*place, source) : Said{};
  const int adverb_at = adverb ? put(adverb->source) : -1;

  IntoTarget target(out);
  if (adverb) target.word(adverb->target, adverb_at);
  target.phrase(subject, subject_at);
  target.phrase(object, object_at);
  if (place) {
    target.phrase(*place, place_at);
    target.word(preposition->target, preposition_at);
  }
  target.word(verb_in(verb, subject.many, past), verb_at, subject_at.noun);
  return out;
}

Translation joined(const Translation& first, const Translation& second) {
  Translation out = first;
  out.source.emplace_back("and");
  out.target.emplace_back("et");
  const int source = static_cast<int>(out.source.size()), target = static_cast<int>(out.target.size());
  out.known.sure.insert({source - 1, target - 1});
  out.known.possible.insert({source - 1, target - 1});
  out.source.insert(out.source.end(), second.source.begin(), second.source.end());
  out.target.insert(out.target.end(), second.target.begin(), second.target.end());
  for (const AlignedPair& pair : second.known.sure) out.known.sure.insert({pair.source + source, pair.target + target});
  for (const AlignedPair& pair : second.known.possible)
    out.known.possible.insert({pair.source + source, pair.target + target});
  return out;
}

int target_words() {
  // Nouns and articles in two numbers, articles and adjectives in two classes, verbs of either time and number.
  return static_cast<int>(2 * std::size(nouns) + 4 * std::size(articles) + 4 * std::size(adjectives) +
                          4 * std::size(verbs) + std::size(prepositions) + std::size(adverbs) + 1);
}

}  // namespace headscope
