// Keys and values in pages (Kwon et al., Efficient Memory Management for Large Language Model Serving with
// PagedAttention, 2023): the cache is cut into blocks of B tokens, a sequence takes a new one when its last is full,
// and a table says which. Reserving room for the longest text wastes whatever is not written; pages waste at most B − 1
// tokens a sequence. The same sequences cut to a window of W tokens beside it: no waste either, but what is cut is
// gone. Sequences have lengths drawn evenly from 1 … longest; blocks are handed out as tokens arrive, one of each
// sequence in turn, so that those of one sequence lie scattered. Bytes of a token: of the keys and values of the layer
// that is open, times its layers, 4 bytes a number; keys that heads share are counted once. Shapes: table (sequence,
// logical block), pool (physical block, slot).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

struct Bytes {
  double token = 0;
  std::string from;
};

Bytes bytes_of(const MechanismInput& in) {
  if (!in.layer) {
    const Index numbers = in.d() + in.d_v();
    return {4.0 * static_cast<double>(numbers), say("({} + {}) · 4 bytes, one head", in.d(), in.d_v())};
  }
  std::set<const float*> seen;
  Index numbers = 0, heads = 0;
  for (std::size_t h = 0; h < in.layer->k.size(); ++h)
    if (seen.insert(in.layer->k[h].data()).second) {
      ++heads;
      numbers += in.layer->k[h].dim(1) + in.layer->v[h].dim(1);
    }
  return {4.0 * static_cast<double>(numbers * in.layer->layers),
          say("{} layers · {} key-value heads · ({} + {}) · 4 bytes", in.layer->layers, heads, in.d(), in.d_v())};
}

std::string bytes_text(double bytes) {
  static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (unit < 4 && bytes >= 1000) bytes /= 1000, ++unit;
  return fmt::format("{:.{}f} {}", bytes, bytes < 10 && unit > 0 ? 1 : 0, units[unit]);
}

Index blocks_for(Index tokens, Index block) {
  return (tokens + block - 1) / block;
}

struct Pool {
  std::vector<std::vector<Index>> table;       // (sequence, logical block) = physical block
  std::vector<std::pair<Index, Index>> owner;  // (physical block) = sequence, tokens in it
};

/// Tokens arrive one of each sequence in turn; a full or first block takes the next free one.
Pool filled(const std::vector<Index>& lengths, Index block) {
  Pool pool;
  pool.table.resize(lengths.size());
  for (Index t = 0; t < *std::ranges::max_element(lengths); ++t)
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      if (t >= lengths[s]) continue;
      if (t % block == 0) {
        pool.table[s].push_back(static_cast<Index>(pool.owner.size()));
        pool.owner.emplace_back(static_cast<Index>(s), 0);
      }
      ++nth(pool.owner, pool.table[s].back()).second;
    }
  return pool;
}

MechanismResult run_paged_cache(const MechanismInput& in, const MechanismValues& values, Detail) {
  check(in);
  const Index longest = values.whole("longest"), block = std::min(values.whole("block"), longest),
              sequences = values.whole("sequences"), window = values.whole("window");
  Random random(values.seed());
  std::vector<Index> lengths;
  for (Index s = 0; s < sequences; ++s)
    lengths.push_back(1 + static_cast<Index>(random.below(static_cast<std::uint64_t>(longest))));
  Index written = 0, kept = 0;
  for (const Index length : lengths) written += length, kept += std::min(length, window);
  const Pool pool = filled(lengths, block);
  const auto held = static_cast<Index>(pool.owner.size()) * block, reserved = sequences * longest;
  const Bytes bytes = bytes_of(in);

  MechanismResult result;
  const Index logical = blocks_for(longest, block), physical = static_cast<Index>(pool.owner.size());
  Tensor table = Tensor::zeros({sequences, logical}), slots = Tensor::zeros({physical, block}),
         rows = Tensor::zeros({sequences, longest});
  std::vector<std::uint8_t> no_block(static_cast<std::size_t>(sequences * logical), 1),
      empty_slot(static_cast<std::size_t>(physical * block), 1),
      empty_row(static_cast<std::size_t>(sequences * longest), 1);
  for (Index s = 0; s < sequences; ++s) {
    const auto& own = nth(pool.table, s);
    for (std::size_t b = 0; b < own.size(); ++b) {
      table.ref(s, static_cast<Index>(b)) = static_cast<float>(own[b]);
      nth(no_block, s * logical + static_cast<Index>(b)) = 0;
      for (Index slot = 0; slot < nth(pool.owner, own[b]).second; ++slot) {
        slots.ref(own[b], slot) = static_cast<float>(s + 1);
        nth(empty_slot, own[b] * block + slot) = 0;
      }
    }
    for (Index t = 0; t < nth(lengths, s); ++t) {
      rows.ref(s, t) = static_cast<float>(s + 1);
      nth(empty_row, s * longest + t) = 0;
    }
  }
  const auto add = [&](const char* id, const char* title, std::string formula, Tensor value,
                       std::vector<std::uint8_t> masked, std::function<std::string(Index, Index)> explain) {
    result.steps.push_back({.id = id,
                            .title = title,
                            .formula = std::move(formula),
                            .value = std::move(value),
                            .range = MechanismStep::Range::positive,
                            .rows = MechanismAxis::other,
                            .columns = MechanismAxis::other,
                            .masked = std::move(masked),
                            .explain = std::move(explain)});
  };
  add("reserved", said("Without pages"), said("grey: never written"), rows, empty_row,
      [](Index s, Index t) { return say("token {} of sequence {}", t, s + 1); });
  add("table", said("Block table"), said("where each block lies"), table, no_block, [block, lengths](Index s, Index b) {
    const Index last = std::min((b + 1) * block, nth(lengths, s)) - 1;  // the rest of the block is free
    return b * block == last ? say("token {} of sequence {}", last, s + 1)
                             : say("tokens {} … {} of sequence {}", b * block, last, s + 1);
  });
  add("pool", said("Pages in memory"), said("whose; grey: free"), slots, empty_slot,
      [](Index b, Index slot) { return say("block {}, slot {}", b, slot); });

  MechanismCurve curve{said("Waste over the size of a block"),
                       said("block"),
                       said("% of the memory held"),
                       {{"pages", {}, {}}},
                       true,
                       {}};
  MechanismCurve::Line whole{"reserved", {}, {}};
  const auto waste = [&](Index of) { return 100 * (1 - static_cast<double>(written) / static_cast<double>(of)); };
  for (Index size = 1; size <= longest; size *= 2) {
    Index total = 0;
    for (const Index length : lengths) total += blocks_for(length, size) * size;
    curve.lines[0].x.push_back(static_cast<double>(size)), curve.lines[0].y.push_back(waste(total));
    whole.x.push_back(static_cast<double>(size)), whole.y.push_back(waste(reserved));
  }
  curve.lines.push_back(std::move(whole));
  curve.marker = {static_cast<double>(block), waste(held)};
  result.curves.push_back(std::move(curve));
  const auto told = [&](Index tokens) {
    return say("{}, {:.1f} % wasted", bytes_text(bytes.token * static_cast<double>(tokens)), waste(tokens));
  };
  result.facts = {{said("A token"), bytes_text(bytes.token), bytes.from},
                  {said("Written"), bytes_text(bytes.token * static_cast<double>(written)),
                   say("{} tokens of {} sequences", written, sequences)},
                  {said("Without pages"), told(reserved), say("{} · {} tokens reserved", sequences, longest)},
                  {said("In pages"), told(held), say("{} blocks of {} tokens", physical, block)},
                  {said("Cut to a window"),
                   say("{}, {:.1f} % of the tokens are gone", bytes_text(bytes.token * static_cast<double>(kept)),
                       100 * (1 - static_cast<double>(kept) / static_cast<double>(written))),
                   say("the last {} tokens of each", window)}};
  return result;
}

}  // namespace

Mechanism make_paged_cache() {
  Mechanism m;
  m.id = "paged-cache";
  m.title = to_say("The cache in pages: PagedAttention's block table");
  m.name = to_say("Cache in pages");
  m.group = to_say("Memory and blocks");
  m.source = "Kwon et al. 2023";
  m.formula = to_say("key of token t: block table[t ÷ B], slot t mod B");
  m.meaning = to_say(
      "Nobody knows how long an answer gets. Room for the longest is mostly never written; pages of a few tokens are "
      "handed out as they fill, and a table remembers where they lie.");
  m.keywords =
      "PagedAttention paged attention vLLM KV cache blocks block table memory fragmentation waste serving window "
      "eviction batch";
  m.parameters = {whole_parameter("block", to_say("Block B"), to_say("Tokens of a page."), 1, 64, 8, true),
                  whole_parameter("sequences", to_say("Sequences"), to_say("That are written at once."), 1, 16, 6),
                  whole_parameter("longest", to_say("Longest text"),
                                  to_say("What is reserved without pages, in tokens."), 8, 256, 64, true),
                  whole_parameter("window", to_say("Window W"), to_say("For the cut cache: the last tokens of each."),
                                  1, 256, 32, true),
                  seed_parameter(to_say("of the lengths"))};
  m.run = run_paged_cache;
  m.study = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return say("Without pages {}; in pages {}. A window of the last tokens takes {}. A token takes {}: {}.",
               nth(r.facts, 2).value, nth(r.facts, 3).value, nth(r.facts, 4).value, nth(r.facts, 0).value,
               nth(r.facts, 0).provenance);
  };
  return m;
}

}  // namespace headscope::mechanism
