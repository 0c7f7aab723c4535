#include "core/attention/mechanism_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/other_tokens.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/tensor/gap.h"

namespace headscope {

namespace {

// States that would take more than this are not kept to be looked at.
constexpr double most_state_bytes = 128 << 20;
constexpr Index most_cells = Index{4096} * 4096;  // of a matrix; a report keeps about ten

Tensor filled(Index n, Index d, std::initializer_list<float> values) {
  return Tensor::from({n, d}, std::vector<float>(values));
}

/// One query whose weights are these shares of their sum: keys ln share, scale 1. Values are one-hot, so that the
/// output says what is blended. The sum of 0.2, 0.1, 0.5 and 0.3 that the literature writes for "I ate an apple"
/// is 1.1; as a row of softmax each is divided by it.
MechanismInput of_shares(std::initializer_list<float> shares) {
  const auto m = static_cast<Index>(shares.size());
  Tensor k = filled(m, 1, shares), v = Tensor::zeros({m, m});
  for (Index j = 0; j < m; ++j) k.ref(j, 0) = std::log(k.at(j, 0)), v.ref(j, j) = 1;
  return {filled(1, 1, {1}), k, v, 1, full_rule()};
}

}  // namespace

MechanismReport report_on(const MechanismChoice& choice, MechanismInput input) {
  MechanismReport report;
  report.choice = choice;
  report.input = std::move(input);
  const Mechanism& m = *choice.mechanism;
  if (const Index n = report.input.n(), keys = report.input.m(); n * keys > most_cells)
    throw Error(fmt::format("mechanism {}", m.id),
                fmt::format("at most {} cells (4,096 × 4,096): about ten matrices of this size are kept", most_cells),
                fmt::format("{} queries × {} keys, {:.1f} GB each", n, keys, static_cast<double>(n * keys) * 4e-9),
                "open a shorter text");
  report.result = m.run(report.input, choice.values, Detail::steps);
  report.comparison = compare(report.input, report.result);
  report.look_for = what_to_look_for(m, report.input, choice.values, report.result, report.comparison);
  report.hidden = mechanism::hidden_cells(*report.input.rule, report.input.n(), report.input.m());
  if (report.result.weights.defined())
    for (std::size_t c = 0; c < report.hidden.size(); ++c)
      report.looks_ahead = report.looks_ahead || (report.hidden[c] && report.result.weights.values()[c] != 0);
  const Index n = report.input.n();
  if (!m.recurrent) {
    report.no_recurrence =
        m.study ? said("This page studies numbers; there is nothing to run token by token.")
                : said("Every query compares itself with all keys: no state of fixed size holds what they need.");
  } else if (n != report.input.m() || !is_causal(*report.input.rule, n, n)) {
    report.no_recurrence =
        said("The recurrent form needs the causal mask: each token reads what was written before it.");
  } else if (const double bytes = m.cost({n, report.input.d(), report.input.d_v()}, choice.values).state_bytes;
             static_cast<double>(n) * bytes > most_state_bytes) {
    report.no_recurrence =
        say("The states of {} tokens, {:.0f} kB each, are too many to keep; a text of up to {:.0f} has this view.", n,
            bytes / 1024, std::floor(most_state_bytes / bytes));
  } else {
    report.recurrence = m.recurrent(report.input, choice.values);
    if (!m.only_recurrent || !m.only_recurrent(choice.values))
      report.recurrent_gap = greatest_gap(report.recurrence->output, report.result.output);
  }
  return report;
}

std::span<const WorkedExample> worked_examples() {
  static const float root_half = static_cast<float>(1 / std::sqrt(2.0));
  static const auto sound = [] {
    const SoundCut cut;
    return sound_tokens(tones(std::array{220.0, 330.0, 440.0, 330.0, 220.0}, 0.256, cut.rate), cut);
  };
  static const auto insulin = [] { return residue_tokens("FVNQHLCGSHLVEALYLVCGERGFFYTPKT"); };
  static const WorkedExample examples[] = {
      {"one-query",
       to_say("One query, three keys: output 20"),
       [] {
         return MechanismInput{filled(1, 2, {1, 0}), filled(3, 2, {1, 0, 0, 1, 1, 1}), filled(3, 1, {10, 20, 30}),
                               root_half, full_rule()};
       },
       {"q"},
       {"k₁", "k₂", "k₃"}},
      {"welcome",
       to_say("Welcome to Starbucks: softmax(XXᵀ)X"),
       [] {
         // Two-hot rows: "Welcome" shares a part with "Starbucks" and none with "to".
         const Tensor x = filled(3, 4, {1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1});
         return MechanismInput{x, x, x, 1, full_rule()};
       },
       {"Welcome", "to", "Starbucks"},
       {"Welcome", "to", "Starbucks"}},
      {"associativity", to_say("Four tokens of width 2: (QKᵀ)V = Q(KᵀV)"),
       [] {
         return MechanismInput{filled(4, 2, {1, 0, 0, 1, 1, 1, 1, -1}), filled(4, 2, {1, 2, 0, 1, 2, 0, 1, 1}),
                               filled(4, 2, {1, 0, 0, 1, 1, 1, 2, 1}), 1, full_rule()};
       }},
      {"two-by-two", to_say("Two queries, two keys: additive by hand"),
       [] {
         return MechanismInput{filled(2, 2, {1, 0, 0, -1}), filled(2, 2, {0.5f, 1, -1, 2}), filled(2, 1, {1, 2}),
                               root_half, full_rule()};
       }},
      {"apple", to_say("“an” in “I ate an apple”: 2 : 1 : 5 : 3"),
       [] {
         return of_shares({2, 1, 5, 3});
       }},
      {"library", to_say("Six books in 11 hours: 2 : 2 : 2 : 2 : 2 : 1"),
       [] {
         return of_shares({2, 2, 2, 2, 2, 1});
       }},
      {"sound", to_say("A sound: five tones in patches"), [] { return sound().input; }, sound().labels, sound().labels,
       "audio, spectrogram, AST, audio spectrogram transformer, music, Whisper, speech, patches of sound"},
      {"residues", to_say("A protein: insulin’s B chain"), [] { return insulin().input; }, insulin().labels,
       insulin().labels, "amino acids, protein sequence, AlphaFold, ESM, BLOSUM62, biology"},
  };
  return examples;
}

}  // namespace headscope
