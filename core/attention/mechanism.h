#pragma once
// Every way of turning queries, keys and values into an output that this project knows, as a catalogue. A mechanism is
// one file in core/attention/mechanisms/ and one line in mechanisms/all.h; the window, the command line, the edits of
// the loaded model and the tests all read the catalogue and need no further line.
//
// A mechanism works on one head. It gives the effective weights (n × m: what each value row counts for in each output
// row), the output, and every matrix on the way with how its cells came about; where it has one, also the recurrent
// form, which must equal the parallel one; and what it costs. Masks are rules of positions
// (core/trace/attention_rule.h); mechanisms without scores honour which cells a rule hides and no bias that it adds.
// Approximate ones are compared with softmax attention by compare() (mechanism_compare.h); random ones take a seed.
// Thread rule: pure functions.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/trace/attention_map.h"
#include "core/trace/attention_rule.h"

namespace headscope {

/// How often the words of a vocabulary come, for studies of the output layer.
struct VocabularyUse {
  std::vector<double> frequency;        ///< by token id, summing to 1
  Tensor hidden;                        ///< (1, d_model): what the output layer is given after the last token
  std::string from;                     ///< "tiny-gpt2, mean of its 57 next-token distributions on this text"
  std::vector<std::string> words = {};  ///< by token id, as they are written; empty = not known
};

/// The weights that a head's queries, keys and values are made with, and what its layer's output goes through.
struct HeadProjections {
  Tensor x;                       ///< (n, d_model): what they multiply
  Tensor q, k, v;                 ///< W_Q, W_K (d_model, d), W_V (d_model, d_v)
  Tensor q_bias, k_bias, v_bias;  ///< (d), (d), (d_v); undefined where the model has none
  Tensor o;                       ///< (heads · d_v, d_model): W_O, all heads' rows one below another
  std::string from;               ///< "blocks.0.ln1.hook_normalized": where x stands
};

/// The layer that a head belongs to, for mechanisms whose heads differ from one another or are normed together.
struct HeadsOfLayer {
  Index layer = 0, layers = 1;
  std::vector<Tensor> q, k, v;  ///< of every head, each as MechanismInput's; heads that share keys share tensors
};

/// One head's queries, keys and values, and who may see whom. n queries and m keys need not be equally many.
struct MechanismInput {
  Tensor q;                                              ///< (n, d), after rotation where the model rotates; contiguous
  Tensor k;                                              ///< (m, d)
  Tensor v;                                              ///< (m, d_v)
  float scale = 1;                                       ///< what q·k is multiplied by: 1/√d as a rule
  std::shared_ptr<const AttentionRule> rule;             ///< never null
  std::stop_token stop = {};                             ///< long runs throw Cancelled
  std::shared_ptr<const VocabularyUse> vocabulary = {};  ///< of the open model, where a mechanism reads one; else null
  float temperature = 1;  ///< what `scale` was divided by already: for scores that are not made with `scale`
  Index head = 0;         ///< its number in the layer
  std::shared_ptr<const HeadsOfLayer> layer = {};           ///< null: a layer of this one head
  std::shared_ptr<const HeadProjections> projections = {};  ///< where a mechanism reads them and the head has them
  bool two_texts = false;                                   ///< queries are of one text, keys and values of another

  Index n() const { return q.dim(0); }
  Index m() const { return k.dim(0); }
  Index d() const { return q.dim(1); }
  Index d_v() const { return v.dim(1); }
};

/// Every head of a layer, from q (query, head, d), k and v (key, head or group of heads, d), which may be views.
std::shared_ptr<const HeadsOfLayer> heads_of_layer(const Tensor& q, const Tensor& k, const Tensor& v, Index layer,
                                                   Index layers);
/// Queries, keys and values of one of them; scale and rule are left to the caller.
MechanismInput input_of_head(std::shared_ptr<const HeadsOfLayer> layer, Index head);

class MechanismValues;
struct MechanismShape;

struct MechanismParameter {
  enum class Kind {
    number,
    whole,
    choice,  ///< the value is the index into `choices`
    toggle,  ///< 0 or 1
  };
  std::string_view name;   ///< "features": as written on the command line
  std::string_view title;  ///< "Random features"
  std::string_view words;  ///< what it does, one sentence
  Kind kind = Kind::number;
  double low = 0, high = 1, usual = 0;
  bool logarithmic = false;  ///< a slider spaces by ratios
  std::vector<std::string_view> choices = {};
  /// False where the values of others, or the shape of the text, leave this one without a say: it is not shown then.
  /// nullptr = it always has one.
  bool (*counts)(const MechanismValues&, const MechanismShape&) = nullptr;
};
MechanismParameter number_parameter(std::string_view name, std::string_view title, std::string_view words, double low,
                                    double high, double usual, bool logarithmic = false);
MechanismParameter whole_parameter(std::string_view name, std::string_view title, std::string_view words, double low,
                                   double high, double usual, bool logarithmic = false);
MechanismParameter choice_parameter(std::string_view name, std::string_view title, std::string_view words,
                                    std::vector<std::string_view> choices, int usual = 0);
MechanismParameter toggle_parameter(std::string_view name, std::string_view title, std::string_view words, bool usual);
MechanismParameter seed_parameter(std::string_view words = "");  ///< usually "of the random numbers"
MechanismParameter only_where(MechanismParameter parameter,
                              bool (*counts)(const MechanismValues&, const MechanismShape&));

/// A value for each parameter of one mechanism.
class MechanismValues {
 public:
  double number(std::string_view name) const;  ///< REQUIRES that the mechanism has such a parameter
  Index whole(std::string_view name) const { return static_cast<Index>(number(name)); }
  bool on(std::string_view name) const { return number(name) != 0; }
  std::uint64_t seed() const { return static_cast<std::uint64_t>(number("seed")); }
  void set(std::string_view name, double value) { values_.insert_or_assign(std::string(name), value); }
  bool operator==(const MechanismValues&) const = default;

 private:
  std::map<std::string, double, std::less<>> values_;
};

/// What the rows or the columns of a matrix stand for: positions of the text get its tokens as labels.
enum class MechanismAxis { query, key, dimension, other };

/// One matrix of the computation.
struct MechanismStep {
  enum class Range { signed_values, positive, probability };
  std::string id;       ///< "scores"
  std::string title;    ///< "Scores"
  std::string formula;  ///< "scale · Q Kᵀ"
  Tensor value;         ///< (rows, columns); a vector over positions is (n, 1)
  Range range = Range::signed_values;
  MechanismAxis rows = MechanismAxis::query, columns = MechanismAxis::key;
  std::vector<std::uint8_t> masked = {};  ///< row-major, 1 = hidden by the rule; empty = none
  Index first_row = 0, first_column = 0;  ///< of rows and columns that are positions: where they begin in the text
  std::vector<std::string> row_names = {}, column_names = {};  ///< in place of the text's tokens
  bool mixture = false;  ///< numbers weighed by shares: written with decimals also where they come out whole
  /// How the cell came about, with the actual numbers: "0.40·10 + 0.20·20 + 0.40·30". May be empty.
  std::function<std::string(Index row, Index column)> explain = {};
};

/// A curve that belongs to the computation: singular values, entropy over temperature.
struct MechanismCurve {
  std::string title, x_title, y_title;
  struct Line {
    std::string label;
    std::vector<double> x, y;
    std::vector<double> least = {}, most = {};  ///< a band about the line; empty = none
    bool dots = false;                          ///< points that no line joins
    bool level = false;                         ///< what the others are held against: dashed
  };
  std::vector<Line> lines;
  bool log_x = false;
  std::optional<std::pair<double, double>> marker = {};  ///< where the present parameters lie
  bool from_zero = false;                                ///< the upward axis begins at 0
  bool log_y = false;
  bool bars = false;  ///< numbers of a few x each, not a course between them
};

/// The way from the root of a binary code's tree to one leaf, with what was not taken.
struct MechanismPath {
  struct Turn {
    int bit = 0;             ///< 0 or 1: taken
    double probability = 0;  ///< of taking it
    double share = 0;        ///< of all uses: how often some leaf below the taken branch comes
    Index other_leaves = 0;  ///< below the branch that was not taken …
    std::string other;       ///< … in words: the leaf's name, or the first of several
  };
  std::string leaf;
  std::vector<Turn> turns;  ///< from the root
  double product = 0;       ///< of the turns' probabilities
  double frequency = 0;     ///< of the leaf
  /// Leaves cut into groups by frequency, the most frequent first.
  struct Cluster {
    std::string name;
    Index leaves = 0;
    double share = 0;  ///< of all uses
    Index width = 0;   ///< of what its scores are products of
  };
  std::vector<Cluster> clusters;
  struct Cost {
    std::string name;
    double multiply_adds = 0;
  };
  std::vector<Cost> costs;  ///< for one token, the plain way first
};

struct MechanismFact {
  std::string name, value, provenance;
};

struct TileWork;     // mechanism_ticks.h
struct RingRound;    // likewise
struct MemoryPaths;  // memory_paths.h

struct MechanismResult {
  Tensor weights;  ///< (n, m) effective weights; undefined for a study, which has none
  MapKind kind = MapKind::probability;
  Tensor output;  ///< (n, d_v)
  bool output_is_weights_times_v =
      true;                            ///< false: the weights are a summary, as where parts of v are read differently
  std::vector<MechanismStep> steps;    ///< filled for Detail::steps
  std::vector<MechanismCurve> curves;  ///< likewise
  std::optional<MechanismPath> path = {};  ///< likewise
  std::vector<MechanismFact> facts;
  std::shared_ptr<const TileWork> tiles = {};      ///< of one that works tile by tile, for Detail::steps; else null
  std::shared_ptr<const RingRound> ring = {};      ///< of one whose workers pass blocks round; likewise
  std::shared_ptr<const MemoryPaths> memory = {};  ///< of one that joins a memory to attention; likewise
};

/// The same outputs token by token.
struct Recurrence {
  std::string update, readout;  ///< "Sₜ = Sₜ₋₁ + φ(kₜ) vₜᵀ", "oₜ = φ(qₜ)ᵀ Sₜ ÷ φ(qₜ)ᵀ zₜ"
  std::vector<Tensor> states;  ///< after token t: (features, d_v), with a last column where z is part of the state
  bool last_column_is_z = false;
  Tensor output;      ///< (n, d_v)
  Tensor gates = {};  ///< (n, features): what each row of the state is multiplied by before token t; may be undefined
};

/// Of one pass over n keys and, where it is not said otherwise, as many queries, in float32, without use of a mask's
/// empty cells. Costs are those of as many queries as keys.
struct MechanismShape {
  Index n = 0, d = 0, d_v = 0;
  Index queries = 0;  ///< 0 = n
  Index rows() const { return queries > 0 ? queries : n; }
};
struct MechanismCost {
  double multiply_adds = 0;
  double state_bytes = 0;  ///< what a generating model carries from token to token besides a cache; 0 = nothing
  double cache_bytes = 0;  ///< keys and values that it must keep
  double moved_bytes = 0;  ///< between large slow and small fast memory, as the method is meant to be run
};

/// "Q 24×32", in the colour of its role, after "→" or "·".
struct ShapeChip {
  enum class Role { query, key, value, plain, output, remark } role = Role::plain;
  std::string text;
  std::string before = "→";
};

enum class Detail { output, weights, steps };

/// What can be done to the scores of a mechanism.
enum class ScoreEdits {
  none,    ///< it has none, or only inside: a temperature, ln n or a bias of positions has nothing to act on
  scaled,  ///< softmax of scale · q·k, approximated or over other keys: one temperature for all rows acts through
           ///< `scale`
  all      ///< every cell's score exists before its softmax: what the rule adds or multiplies counts
};

struct Mechanism {
  std::string_view id;             ///< "linear"
  std::string_view title;          ///< "Linear attention, φ(x) = 1 + elu(x)"
  std::string_view name;           ///< "Linear, 1+elu": in a list
  std::string_view group;          ///< "Low rank & kernel"
  std::string_view source;         ///< "Katharopoulos et al. 2020"
  std::string_view formula;        ///< "O = φ(Q) (φ(K)ᵀ V) ÷ φ(Q) Σφ(k)"
  std::string_view meaning;        ///< one or two sentences
  std::string_view keywords = "";  ///< further words that find it
  std::string_view ours = "";      ///< what a head alone cannot take from the paper, and what stands in its place
  std::vector<MechanismParameter> parameters = {};
  MechanismResult (*run)(const MechanismInput&, const MechanismValues&, Detail) = nullptr;
  /// The output alone, in the way and with the cost that the method is made for; nullptr = run(…, Detail::output).
  Tensor (*output)(const MechanismInput&, const MechanismValues&) = nullptr;
  /// nullptr = none. REQUIRES a causal rule and n = m.
  Recurrence (*recurrent)(const MechanismInput&, const MechanismValues&) = nullptr;
  /// True: run() itself goes token by token, there is no parallel form that the recurrent one could be held against.
  bool (*only_recurrent)(const MechanismValues&) = nullptr;
  MechanismCost (*cost)(const MechanismShape&, const MechanismValues&) = nullptr;
  std::vector<ShapeChip> (*chips)(const MechanismShape&, const MechanismValues&) = nullptr;
  /// Further sentences that are true of this result; nullptr = none.
  std::string (*note)(const MechanismInput&, const MechanismValues&, const MechanismResult&) = nullptr;
  bool encoder = false;       ///< has its cost only where every query sees every key
  bool needs_causal = false;  ///< run() throws Error under another rule
  /// A study of the numbers themselves: run() gives steps and curves, no weights; it cannot take softmax's place.
  bool study = false;
  /// How many ticks its parameter "done" (a share of them) or "rounds" (as many) runs through; nullptr = it has none.
  Index (*ticks)(const MechanismShape&, const MechanismValues&) = nullptr;
  std::string_view tick = "";      ///< "tile": what one is called
  bool reads_vocabulary = false;   ///< MechanismInput::vocabulary is worth making
  bool reads_projections = false;  ///< MechanismInput::projections is worth making
  bool crosses = false;            ///< asks one sequence with another: an encoder-decoder's own two, or two texts
  ScoreEdits score_edits = ScoreEdits::none;
  bool knows_sinks = false;  ///< AttentionRule::sink takes part in its softmax

  const MechanismParameter* parameter(std::string_view name) const;
  MechanismValues usual() const;
  /// Those that have a say, in order.
  std::vector<const MechanismParameter*> shown_parameters(const MechanismValues&, const MechanismShape&) const;
};

/// The catalogue, in the order of its groups.
std::span<const Mechanism> mechanisms();
/// nullptr when there is none.
const Mechanism* find_mechanism(std::string_view id);

/// A mechanism with its values: "linear map=relu normalise=on" reads back to an equal value.
struct MechanismChoice {
  const Mechanism* mechanism = nullptr;
  MechanismValues values;
};
std::string text_of(const MechanismChoice& choice);
std::string value_text(const MechanismParameter& parameter, double value);
/// Values that are not named are the usual ones. Throws Error at `where`: the nearest ids for an unknown one, the names
/// for an unknown parameter, the bounds for a number outside them.
MechanismChoice parse_mechanism(std::string_view spec, const std::string& where = "mechanism");

/// True when every query sees itself and all before it, and nothing is added.
bool is_causal(const AttentionRule& rule, Index n, Index m);
/// True when every query sees every key, and nothing is added.
bool is_full(const AttentionRule& rule, Index n, Index m);

/// The cheapest output: mechanism.output, or run()'s.
Tensor output_of(const Mechanism& mechanism, const MechanismInput& in, const MechanismValues& values);

}  // namespace headscope
