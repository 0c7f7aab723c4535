// The rules that tell which word belongs to which: by hand on sentences, and against the truth of stories whose grammar
// is known.

#include "core/trace/word_links.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/trace/trace.h"
#include "core/train/language.h"

namespace headscope::word_links_test {

namespace {

/// A token for each word, with the space before it, and for each punctuation mark.
std::vector<Token> tokens_of(const std::string& text) {
  std::vector<Token> tokens;
  const auto letter = [&](std::size_t i) {
    return std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '\'';
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    if (text[i] == ' ') ++i;
    const bool word = i < text.size() && letter(i);
    if (i < text.size()) ++i;
    while (word && i < text.size() && letter(i)) ++i;
    Token token;
    token.bytes = token.label = text.substr(begin, i - begin);
    token.begin = static_cast<int>(begin);
    token.end = static_cast<int>(i);
    tokens.push_back(token);
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {  // equal words have equal numbers
    std::size_t first = 0;
    while (tokens[first].bytes != tokens[i].bytes) ++first;
    tokens[i].id = static_cast<std::int32_t>(first);
  }
  return tokens;
}

/// One token for each of these bytes.
std::vector<Token> pieces(const std::vector<std::string>& bytes) {
  std::vector<Token> tokens;
  for (const std::string& each : bytes) {
    Token token;
    token.bytes = token.label = each;
    token.id = static_cast<std::int32_t>(std::ranges::find(bytes, each) - bytes.begin());
    tokens.push_back(token);
  }
  return tokens;
}

std::string bare(const Token& token) {
  return token.bytes.front() == ' ' ? token.bytes.substr(1) : token.bytes;
}

/// "sold>Anna saw>she": every link of a relation, in the order of the text.
std::string links_in(const std::string& text, WordRelation relation) {
  const std::vector<Token> tokens = tokens_of(text);
  const auto links = word_links(tokens);
  std::string out;
  for (int row = 0; row < links.of(relation).rows(); ++row)
    for (const std::int32_t key : links.of(relation).row(row))
      out += (out.empty() ? "" : " ") + bare(tokens[static_cast<std::size_t>(row)]) + ">" +
             bare(tokens[static_cast<std::size_t>(key)]);
  return out;
}

using Ranges = std::vector<std::pair<Index, Index>>;
Ranges sentences_in(const std::vector<Token>& tokens) {
  Ranges out;
  for (const KeyRange& each : word_links(tokens).sentences) out.emplace_back(each.begin, each.end);
  return out;
}

/// How often the rules agree with what a grammar says.
struct Agreement {
  int truth = 0, told = 0, right = 0;  ///< words with a true link; of these told one; and a true one
};
Agreement agreement(LinkKind kind, WordRelation relation, int stories) {
  const Language language(Grammar::stories());
  Random random(7);
  Agreement out;
  for (int s = 0; s < stories; ++s) {
    const Story story = language.sample(random);
    const std::vector<Token> tokens = tokens_of(story.text);
    const auto links = word_links(tokens);
    REQUIRE(links.english);
    std::map<std::size_t, std::set<std::size_t>> truth;  // by tokens, which are words
    const auto token_at = [&](const TextSpan& span) {
      std::size_t at = 0;
      while (static_cast<std::size_t>(tokens[at].end) < span.end) ++at;
      return at;
    };
    for (const TruthLink& link : story.links)
      if (link.kind == kind) truth[token_at(link.from)].insert(token_at(link.to));
    for (const auto& [from, to] : truth) {
      const auto told = links.of(relation).row(static_cast<int>(from));
      ++out.truth;
      out.told += !told.empty();
      out.right +=
          std::ranges::any_of(told, [&](std::int32_t key) { return to.contains(static_cast<std::size_t>(key)); });
    }
  }
  return out;
}

}  // namespace

TEST_CASE("verbs find their subjects: past phrases, clauses, auxiliaries and conjunctions") {
  const auto subjects = [](const std::string& text) { return links_in(text, WordRelation::subject); };
  CHECK(subjects("The old wolf ran to the village.") == "ran>wolf");
  CHECK(subjects("The people of the village often sang a song.") == "sang>people");
  CHECK(subjects("Anna, who knew Ben, sold the cakes.") == "knew>Anna sold>Anna");
  CHECK(subjects("The key that I had lost was rusty.") == "had>I lost>I was>key");
  CHECK(subjects("She baked the bread and sold it to a man.") == "baked>She sold>She");
  CHECK(subjects("In the evening, he wanted to sing.") == "wanted>he");
  CHECK(subjects("The boys have not seen the painted box.") == "have>boys seen>boys");
  for (const char* quoted : {"The boys asked, \"Who ran home?\"", "The boys asked, “Who ran home?”"})
    CHECK(subjects(quoted) == "asked>boys ran>Who");     // at the beginning of a sentence: of no noun before it
  CHECK(subjects("Under the tree sat a cat.").empty());  // stands ahead: the rules tell nothing
}

TEST_CASE("nouns, adjectives and prepositions find one another") {
  const std::string text = "The old wolf ran to the village with a small black dog and sold his milk.";
  CHECK(links_in(text, WordRelation::determiner) == "wolf>The village>the dog>a milk>his");
  CHECK(links_in(text, WordRelation::adjective) == "old>wolf small>dog black>dog");
  CHECK(links_in(text, WordRelation::preposition_object) == "to>village with>dog");
  CHECK(links_in(text, WordRelation::object_preposition) == "village>to dog>with");
  CHECK(links_in(text, WordRelation::object) == "milk>sold");
}

TEST_CASE("he and she mean whom of their sex was named last; it and they are left out") {
  CHECK(links_in("Anna met the king. She gave him her cakes and he ate it. They sang.", WordRelation::antecedent) ==
        "She>Anna him>king her>Anna her>She he>king he>him");
  CHECK(links_in("Anna met Lucy. Then she ran.", WordRelation::antecedent) == "she>Lucy");
  CHECK(links_in("Ella and Noah met Mia. She saw him.", WordRelation::antecedent) == "She>Mia him>Noah");
  CHECK(links_in("He ran to the house.", WordRelation::antecedent).empty());  // nobody was named
}

TEST_CASE("what stands once, and where sentences begin, is told of any text") {
  const std::vector<Token> tokens = tokens_of("Rum gab nix! Gab rum? Zot, nix");
  const auto links = word_links(tokens);
  CHECK_FALSE(links.english);
  CHECK(sentences_in(tokens) == Ranges{{0, 4}, {4, 7}, {7, 10}});
  CHECK(links.once == std::vector<std::int32_t>{7});  // Zot: case aside, the others stand twice
  for (const TokenLinks::List& list : links.relations) CHECK(list.keys.empty());
  // The first token of a text is a sink, and says nothing of rare words.
  CHECK(word_links(tokens_of("one two two")).once.empty());
}

TEST_CASE("special tokens part sentences and are of none; a text without bytes has none") {
  std::vector<Token> tokens = tokens_of("Ben ran home. Go!");
  Token special;
  special.label = "[SEP]";
  tokens.insert(tokens.begin(), special);
  tokens.insert(tokens.begin() + 3, special);
  tokens.push_back(special);  // [SEP] Ben ran [SEP] home . Go ! [SEP]
  CHECK(sentences_in(tokens) == Ranges{{1, 3}, {4, 6}, {6, 8}});
  std::vector<Token> marked = tokens_of("Ben ran. Go");
  marked.insert(marked.begin() + 2, special);  // Ben ran [SEP] . Go: the mark is of no sentence
  CHECK(sentences_in(marked) == Ranges{{0, 2}, {4, 5}});
  tokens[3].masked = true;  // a word that is asked for
  CHECK(sentences_in(tokens) == Ranges{{1, 6}, {6, 8}});
  for (Token& token : tokens) token.bytes.clear();  // patches of a picture, numbers, labels of a file
  CHECK(sentences_in(tokens).empty());
  CHECK(word_links(tokens).once.empty());
  CHECK(sentences_in(tokens_of("\"Go!\" he said.")) == Ranges{{1, 4}, {4, 7}});  // a mark begins none
}

TEST_CASE("a mark is what holds no letter and no digit, in any script; sentences end at the marks of each") {
  CHECK(sentences_in(pieces({"He", " left", ".”", " She", " ran", "."})) == Ranges{{0, 3}, {3, 6}});
  CHECK(sentences_in(pieces({"“", "Go", ".”", " He", " ran", "."})) == Ranges{{1, 3}, {3, 6}});
  CHECK(sentences_in(pieces({"He", " ran", "…", " 3", " men", " saw", " —", " him", "."})) == Ranges{{0, 3}, {3, 9}});
  CHECK(sentences_in(pieces({"他", "跑", "，", "她", "看", "。", "“", "走", "！”", "好", "？"})) ==
        Ranges{{0, 7}, {7, 9}, {9, 11}});
  CHECK(sentences_in(pieces({"أين", " هو", "؟", " هنا", "،", " نعم", "."})) == Ranges{{0, 3}, {3, 7}});
  CHECK(sentences_in(pieces({"वह", " गया", "।", " मैं", " रुका", "।"})) == Ranges{{0, 3}, {3, 6}});
  // Marks are none of the words that stand once.
  CHECK(word_links(pieces({"Zot", " —", " rum", " “", "gab", "”", "。", " 12", " ❤️", "_", " 👩‍🌾"})).once ==
        std::vector<std::int32_t>{2, 4, 7});
}

TEST_CASE("English is told by words that no other language has") {
  for (const char* text : {
           "Mr and Mrs Quill of Fox Hythe kept bees.",
           "The old wolf ran to the village.",
           "The wolf ran",
           "She likes him.",
           "Then they went home.",
           "You could not see it.",
           "It was late, and nobody in the house knew what he had done with his keys.",
           "🐺 The wolf ran. 🎉🎉🎉🎉",
           "« The wolf ran » — so they said.",
           "In 1984, 1985, 1986, 1987, 1988, 1989 the wolf ran.",
           "“Don’t go,” she said, “it’s the last café that’s open.”",
       })
    CHECK_MESSAGE(word_links(tokens_of(text)).english, text);
  for (const char* text : {
           // Portuguese, Italian, German, Dutch, Spanish, French, Danish
           "A casa estava no fim da rua e o menino via as flores do jardim. A menina foi no carro com a irma e "
           "disse as palavras do pai, que era o dono da casa, no mesmo dia.",
           "Il vecchio era in casa e non voleva andare a Roma. A lui no, disse la donna, ma i bambini do a te. In "
           "quel giorno era bello, e la gente andava in piazza a parlare.",
           "Der Mann war am Abend in der Stadt, so was hatte er noch nie gesehen. Was will er, an dem Tag, an dem "
           "all das begann? Er war so froh, und die Not war am Ende vorbei.",
           "Het was in de winter en hij had geen brood of water. Is dat zo? Wat was het koud, over de brug en onder "
           "de bomen, we had er een been of een arm voor over.",
           "La casa era grande y no me gusta, me has dado un libro a la hora de comer. Yo no he ido a la plaza, he "
           "comido pan, no ha sido un mal dia, a mi me gusta el mar.",
           "On a un chat et on a un but. Le chat est sur la table, on dine a la maison, or il a faim. Les amis on "
           "les attend au coin de la rue, on rit, on chante, on a bien mange.",
           "Vi har at have en god have, for at have det godt her i byen. Her er en mand, der er under et tre, og "
           "for at se ham, da han var ung, skal man over en bro.",
           "Rum gab nix! Gab rum? Zot, nix",
           "",
       })
    CHECK_MESSAGE(!word_links(tokens_of(text)).english, text);
  // A few English words in a text of other letters.
  const std::string mixed = "Это книга the and of автора, которую читают дети и взрослые";
  CHECK_FALSE(word_links(tokens_of(mixed)).english);
}

TEST_CASE("no rule looks back further than forty words") {
  const auto subjects = [](std::string text, int phrases, int adjectives, const std::string& rest) {
    for (int i = 0; i + 1 < phrases; ++i) text += " of the box";
    text += " of the";
    for (int i = 0; i < adjectives; ++i) text += " old";
    return links_in(text + " box" + rest, WordRelation::subject);
  };
  // "that" stands 40 words before "was", then 41.
  CHECK(subjects("The key that I lost", 12, 1, " was rusty.") == "lost>I was>key");
  CHECK(subjects("The key that I lost", 12, 2, " was rusty.").find("was>key") == std::string::npos);
  // The phrase behind the first "of" begins 39 words before "was", then 40.
  CHECK(subjects("The key", 13, 1, " was rusty.") == "was>key");
  CHECK(subjects("The key", 13, 2, " was rusty.") == "was>box");
  // "kept" stands 40 words before "sold", then 41.
  CHECK(subjects("She kept", 12, 2, " and sold it.") == "kept>She sold>She");
  CHECK(subjects("She kept", 12, 3, " and sold it.") == "kept>She");
  // Else a text without punctuation would take the square of its length: here minutes.
  std::string text;
  for (int i = 0; i < 40000; ++i) text += " the dog ran on the river";
  CHECK(word_links(tokens_of(text)).english);
}

TEST_CASE("a word in pieces looks from its last token, and is looked at in all of them") {
  std::vector<Token> tokens = tokens_of("The wolf ran");
  Token rest = tokens[1];
  tokens[1].bytes = " wo";
  rest.bytes = "lf";
  tokens.insert(tokens.begin() + 2, rest);  // The | wo | lf | ran
  const auto links = word_links(tokens);
  const auto row = [&](WordRelation relation, int i) {
    const auto keys = links.of(relation).row(i);
    return std::vector<std::int32_t>(keys.begin(), keys.end());
  };
  CHECK(row(WordRelation::subject, 3) == std::vector<std::int32_t>{1, 2});
  CHECK(row(WordRelation::determiner, 2) == std::vector<std::int32_t>{0});
  CHECK(row(WordRelation::determiner, 1).empty());
}

TEST_CASE("on stories whose links are known the rules are nearly always right where they speak") {
  const Agreement subject = agreement(LinkKind::subject, WordRelation::subject, 200),
                  determiner = agreement(LinkKind::determiner, WordRelation::determiner, 200),
                  antecedent = agreement(LinkKind::antecedent, WordRelation::antecedent, 200);
  const auto share = [](int part, int whole) { return static_cast<double>(part) / whole; };
  for (const Agreement& each : {subject, determiner, antecedent})
    MESSAGE(each.truth << " true, told " << each.told << ", right " << each.right);
  CHECK(share(subject.right, subject.told) > 0.95);
  CHECK(share(subject.right, subject.truth) > 0.8);
  CHECK(share(determiner.right, determiner.told) > 0.96);
  CHECK(share(determiner.right, determiner.truth) > 0.9);
  CHECK(share(antecedent.right, antecedent.told) > 0.94);
  CHECK(share(antecedent.right, antecedent.truth) > 0.8);
}

}  // namespace headscope::word_links_test
