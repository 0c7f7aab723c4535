// Softmax over a vocabulary, cheaper (Morin & Bengio, Hierarchical Probabilistic Neural Network Language Model, 2005;
// Mikolov et al., Distributed Representations of Words, 2013; Grave et al., Efficient Softmax Approximation for GPUs,
// 2017). Hierarchical: words are leaves of a Huffman tree by frequency; a word's probability is the product of σ(±w·h)
// along its path, so leaves sum to 1 and a word costs its path's length. Adaptive: frequent words share a head with one
// entry for each cluster of rarer ones, whose projections are narrower by 4 each.
// Frequencies: the open model's, its mean next-token distribution over the text, with h what its output layer is given
// after the last token; or Zipf's law, f ∝ 1/rank, with h the last query of the input. w of inner nodes are drawn
// N(0, 1/d): no such tree was trained. Shapes: tree with V leaves, V − 1 inner nodes. Cost: V d plain; Σ f · path · d;
// clusters as below.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <queue>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

struct Tree {
  std::vector<int> parent;     // of all nodes, leaves first; −1 = root
  std::vector<bool> is_right;  // of its parent
  Index leaves = 0;
};

/// Huffman 1952: the two rarest are joined until one is left.
Tree huffman(const std::vector<double>& frequency) {
  Tree tree;
  tree.leaves = static_cast<Index>(frequency.size());
  using Entry = std::pair<double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  for (std::size_t i = 0; i < frequency.size(); ++i) open.emplace(frequency[i], static_cast<int>(i));
  tree.parent.assign(frequency.size(), -1);
  tree.is_right.assign(frequency.size(), false);
  while (open.size() > 1) {
    const Entry a = open.top();
    open.pop();
    const Entry b = open.top();
    open.pop();
    const int node = static_cast<int>(tree.parent.size());
    tree.parent.push_back(-1);
    tree.is_right.push_back(false);
    nth(tree.parent, a.second) = nth(tree.parent, b.second) = node;
    nth(tree.is_right, b.second) = true;
    open.emplace(a.first + b.first, node);
  }
  return tree;
}

std::vector<double> zipf(Index words) {
  std::vector<double> f(static_cast<std::size_t>(words));
  double sum = 0;
  for (Index i = 0; i < words; ++i) sum += nth(f, i) = 1 / static_cast<double>(i + 1);
  for (double& each : f) each /= sum;
  return f;
}

/// h · w of every inner node; the w are drawn one after another, since all of them may not fit into memory.
std::vector<double> drives(Index nodes, const Tensor& h, const MechanismInput& in, std::uint64_t seed) {
  Random random(seed);
  const Index d = h.dim(1);
  const double spread = 1 / std::sqrt(static_cast<double>(d));
  std::vector<double> out(static_cast<std::size_t>(nodes), 0.0);
  for (Index node = 0; node < nodes; ++node) {
    if (node % 4096 == 0) check(in);
    double sum = 0;
    for (Index c = 0; c < d; ++c) sum += static_cast<double>(random.normal()) * static_cast<double>(h.at(0, c));
    nth(out, node) = sum * spread;
  }
  return out;
}

int steps_to(const Tree& tree, Index leaf) {
  int steps = 0;
  for (int node = static_cast<int>(leaf); nth(tree.parent, node) >= 0; node = nth(tree.parent, node)) ++steps;
  return steps;
}

/// From the root to the leaf of rank `leaf`; `drive`: of inner node i at i − leaves.
MechanismPath path_to(const Tree& tree, const std::vector<double>& frequency, const std::vector<double>& drive,
                      const std::vector<std::string>& names, Index leaf) {
  const auto name = [&](Index rank) {
    return rank < static_cast<Index>(names.size()) ? nth(names, rank) : say("word {}", rank + 1);
  };
  // Of every node: leaves below it, how often one of them comes; children come before their parents.
  std::vector<Index> leaves(tree.parent.size(), 0);
  std::vector<double> share(tree.parent.size(), 0.0);
  std::vector<std::array<int, 2>> children(tree.parent.size(), {-1, -1});
  for (std::size_t node = 0; node < tree.parent.size(); ++node) {
    if (node < frequency.size()) leaves[node] = 1, share[node] = frequency[node];
    const int parent = tree.parent[node];
    if (parent < 0) continue;
    nth(leaves, parent) += leaves[node];
    nth(share, parent) += share[node];
    nth(children, parent)[tree.is_right[node]] = static_cast<int>(node);
  }
  MechanismPath path;
  path.leaf = name(leaf);
  path.frequency = nth(frequency, leaf);
  path.product = 1;
  for (int node = static_cast<int>(leaf); nth(tree.parent, node) >= 0; node = nth(tree.parent, node)) {
    const int parent = nth(tree.parent, node), bit = tree.is_right[static_cast<std::size_t>(node)];
    const int sibling = nth(children, parent)[1 - bit];
    MechanismPath::Turn turn;
    turn.bit = bit;
    turn.probability = 1 / (1 + std::exp(-nth(drive, parent - static_cast<int>(frequency.size())) * (bit ? 1 : -1)));
    turn.share = nth(share, node);
    turn.other_leaves = nth(leaves, sibling);
    turn.other = turn.other_leaves == 1 ? name(sibling) : say("{} words", turn.other_leaves);
    path.product *= turn.probability;
    path.turns.push_back(std::move(turn));
  }
  std::ranges::reverse(path.turns);
  return path;
}

/// Nullptr: Zipf's law.
const VocabularyUse* own_use(const MechanismInput& in, const MechanismValues& values) {
  return values.number("frequencies") == 0 ? in.vocabulary.get() : nullptr;
}
std::string frequencies_from(const VocabularyUse* own) {
  return own ? own->from : said("Zipf's law, f ∝ 1 ÷ rank");
}

MechanismResult run_vocabulary(const MechanismInput& in, const MechanismValues& values, Detail) {
  check(in);
  const VocabularyUse* const own = own_use(in, values);
  std::vector<double> frequency = own ? own->frequency : zipf(values.whole("words"));
  std::vector<std::string> names;  // by rank, where they are known
  if (own && own->words.size() == frequency.size()) {
    std::vector<std::size_t> order(frequency.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t id) { return frequency[id]; });
    for (const std::size_t id : order) names.push_back(own->words[id]);
  }
  std::ranges::sort(frequency, std::ranges::greater{});
  const std::string from = frequencies_from(own);
  const Tensor h = own ? own->hidden : in.q.slice(0, in.n() - 1, in.n()).copy();
  const auto words = static_cast<Index>(frequency.size());
  const Index d = h.dim(1);
  const Tree tree = huffman(frequency);
  const std::vector<double> drive = drives(words - 1, h, in, values.seed());  // of inner node i, at words + i
  MechanismCurve probability{said("Probability of every word, by rank"),
                             said("rank"),
                             "p",
                             {{said("by the tree"), {}, {}}, {own ? said("the model") : "Zipf", {}, {}}},
                             true,
                             {}};
  MechanismCurve lengths{said("Length of the path, by rank"),       said("rank"), said("steps"),
                         {{"Huffman", {}, {}}, {"log₂ V", {}, {}}}, true,         {}};
  double total = 0, mean_path = 0;
  const Index every = std::max<Index>(1, words / 400);
  for (Index word = 0; word < words; ++word) {
    double log_p = 0;
    int steps = 0;
    for (auto node = static_cast<std::size_t>(word); tree.parent[node] >= 0;
         node = static_cast<std::size_t>(tree.parent[node])) {
      const double x = nth(drive, tree.parent[node] - words) * (tree.is_right[node] ? 1 : -1);
      log_p -= std::log1p(std::exp(-x));
      ++steps;
    }
    total += std::exp(log_p);
    mean_path += nth(frequency, word) * steps;
    if (word % every && word > 20) continue;
    const auto rank = static_cast<double>(word + 1);
    for (auto& line : probability.lines) line.x.push_back(rank);
    for (auto& line : lengths.lines) line.x.push_back(rank);
    probability.lines[0].y.push_back(std::exp(log_p));
    probability.lines[1].y.push_back(nth(frequency, word));
    lengths.lines[0].y.push_back(steps);
    lengths.lines[1].y.push_back(std::log2(static_cast<double>(words)));
  }
  // Adaptive: a head of a fifth of the words, two clusters of the rest, the rarer the larger; widths d, d/4, d/16.
  const Index head = std::max<Index>(1, words / 5), middle = (words - head) / 3, tail = words - head - middle;
  double in_middle = 0, in_tail = 0;
  for (Index i = head; i < words; ++i) (i < head + middle ? in_middle : in_tail) += nth(frequency, i);
  const auto size = static_cast<double>(d);
  const double plain = static_cast<double>(words) * size, hierarchical = mean_path * size,
               adaptive = static_cast<double>(head + 2) * size +
                          in_middle * (size * size / 4 + static_cast<double>(middle) * size / 4) +
                          in_tail * (size * size / 16 + static_cast<double>(tail) * size / 16);
  MechanismResult result;
  result.facts = {
      {said("Leaves sum to"), fmt::format("{:.6f}", total), said("of all words' probabilities by the tree")},
      {said("Plain softmax"), say("{:.0f} multiply-adds", plain), "V d"},
      {said("Hierarchical"), fmt::format("{:.0f}, ÷ {:.0f}", hierarchical, plain / hierarchical),
       say("mean path {:.2f} steps times d = {}; frequencies: {}", mean_path, d, from)},
      {said("Adaptive"), fmt::format("{:.0f}, ÷ {:.1f}", adaptive, plain / adaptive),
       say("head {} words; clusters of {} and {} words, reached {:.1f} % and {:.1f} % of the time", head, middle, tail,
           100 * in_middle, 100 * in_tail)},
      {said("Vocabulary"), say("{} words, d = {}", words, d), say("frequencies: {}", from)},
      {said("Mean path"), say("{:.2f} steps", mean_path),
       say("Σ f · steps; a balanced tree takes {:.2f}", std::log2(static_cast<double>(words)))}};
  const Index chosen = std::min(values.whole("word"), words) - 1;
  lengths.marker = {static_cast<double>(chosen + 1), static_cast<double>(steps_to(tree, chosen))};
  result.curves = {std::move(lengths), std::move(probability)};
  MechanismPath path = path_to(tree, frequency, drive, names, chosen);
  path.clusters = {{said("head"), head, 1 - in_middle - in_tail, d},
                   {said("first cluster"), middle, in_middle, d / 4},
                   {said("second cluster"), tail, in_tail, d / 16}};
  path.costs = {
      {said("plain, V d"), plain}, {said("tree, Σ f · path · d"), hierarchical}, {said("adaptive"), adaptive}};
  result.path = std::move(path);
  return result;
}

}  // namespace

Mechanism make_vocabulary_softmax() {
  Mechanism m;
  m.id = "vocabulary-softmax";
  m.title = to_say("Hierarchical and adaptive softmax over a vocabulary");
  m.name = to_say("Hierarchical & adaptive softmax");
  m.group = to_say("Softmax and scaling");
  m.source = "Morin & Bengio 2005; Grave et al. 2017";
  m.formula = to_say("p(word) = Π σ(± w·h) along its path");
  m.meaning = to_say(
      "The output softmax of a language model costs V d for each token. A Huffman tree makes frequent words cheap; "
      "clusters by frequency spare the rare ones.");
  m.keywords =
      "huffman code path branch clusters huffman tree output layer zipf word2vec hierarchical softmax adaptive softmax "
      "large vocabulary";
  m.parameters = {
      choice_parameter("frequencies", to_say("Frequencies"),
                       to_say("Of the open model on this text, where there is one; or Zipf's law."),
                       {to_say("model"), to_say("zipf")}),
      only_where(whole_parameter("words", to_say("Zipf: words V"), to_say("Of the vocabulary, under Zipf's law."), 2,
                                 50000, 5000, true),
                 [](const MechanismValues& v, const MechanismShape&) { return v.whole("frequencies") == 1; }),
      whole_parameter("word", to_say("Word by rank"), to_say("Whose way is drawn: 1 is the most frequent."), 1, 50000,
                      12, true),
      seed_parameter(to_say("of the inner nodes"))};
  m.run = run_vocabulary;
  m.study = true;
  m.reads_vocabulary = true;
  m.note = [](const MechanismInput& in, const MechanismValues& values, const MechanismResult& r) -> std::string {
    return say(
        "Frequencies: {}. Leaves sum to {}. Multiply-adds for a token: plain {}, hierarchical {}, adaptive {}. The "
        "inner nodes' vectors are drawn, not trained: the tree's probabilities are no prediction, only its lengths and "
        "costs are.",
        frequencies_from(own_use(in, values)), r.facts[0].value,
        fmt::format("{:.0f}", r.path->costs.front().multiply_adds), r.facts[2].value, r.facts[3].value);
  };
  return m;
}

}  // namespace headscope::mechanism
