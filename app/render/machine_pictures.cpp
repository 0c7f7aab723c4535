#include "app/render/machine_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/words.h"
#include "viz/color/color_norm.h"

namespace headscope {

namespace {

Color color_of(ShapeChip::Role role, const Theme& theme) {
  switch (role) {
    case ShapeChip::Role::query:
      return theme.query;
    case ShapeChip::Role::key:
      return theme.key;
    case ShapeChip::Role::value:
      return theme.value;
    default:
      return theme.accent;
  }
}

std::string number(float value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "−∞" : "∞";
  return fmt::format("{}{:.3f}", value < 0 ? "−" : "", std::abs(value));
}

std::string range(const char* name, KeyRange rows) {
  return rows.size() == 0   ? say("{} none", name)
         : rows.size() == 1 ? fmt::format("{} {}", name, rows.begin)
                            : fmt::format("{} {}–{}", name, rows.begin, rows.end - 1);
}

}  // namespace

std::string tick_words(const Mechanism& mechanism, Index done, Index ticks) {
  return say("{} {} of {}", said_view(mechanism.tick), done, ticks);
}

TileMachine tile_machine(const TileWork& work, const Mechanism& mechanism,
                         const std::function<std::string(Index)>& place, const Theme& theme) {
  TileMachine machine;
  machine.state = tick_words(mechanism, work.done, work.tiles);
  for (const TileWork::Block& block : work.blocks)
    machine.slow.push_back({block.name, color_of(block.role, theme), block.rows, block.width, block.held.begin,
                            block.held.end,
                            fmt::format("{} {}", quantity(block.crossed, "B"),
                                        block.role == ShapeChip::Role::output ? said("written") : said("read"))});
  for (const TileWork::Kept& each : work.kept)
    machine.kept.push_back(fmt::format("{} {}×{}", each.name, each.rows, each.width));
  machine.moved = work.moved;
  machine.levels = {{work.moved_in_all, said("all of these tiles, masked ones too")},
                    {work.plain, said("with the n × n matrices in slow memory")}};
  if (work.one_tile < work.moved_in_all)
    machine.levels.push_back({work.one_tile, said("were the whole text one tile")});
  if (work.skipped) machine.row = {said("The mask hides all of this tile: it is skipped.")};
  if (work.row && !work.skipped) {
    const TileWork::Row& row = *work.row;
    const bool first = row.max_before == -std::numeric_limits<float>::infinity();
    machine.row = {say("row {} before → after this tile", place(row.query)),
                   fmt::format("m  {} → {}", number(row.max_before), number(row.max)),
                   first ? fmt::format("l  0 → {}", number(row.sum))
                         : fmt::format("l  {} · e^({}) + {} = {}", number(row.sum_before),
                                       number(row.max_before - row.max), number(row.added), number(row.sum))};
  }
  return machine;
}

WorkerRing worker_ring(const RingRound& round, const Mechanism& mechanism) {
  WorkerRing ring;
  ring.state = tick_words(mechanism, round.done, round.rounds);
  const auto count = static_cast<double>(round.workers.size());
  int idle = 0;
  double cells = 0;
  for (const RingRound::Worker& worker : round.workers) cells += worker.cells / std::max(count, 1.0);
  // "of text 1", "of texts 0–2": whose tokens a worker keeps, where there are several.
  const auto texts = [&](const RingRound::Worker& worker) -> std::string {
    if (round.texts.size() <= 2 || worker.queries.size() == 0) return "";
    const auto text_of = [&](Index at) { return std::ranges::upper_bound(round.texts, at) - round.texts.begin() - 1; };
    const auto first = text_of(worker.queries.begin), last = text_of(worker.queries.end - 1);
    return first == last ? say(" of text {}", first) : say(" of texts {}–{}", first, last);
  };
  for (const RingRound::Worker& worker : round.workers) {
    idle += !worker.works;
    ring.workers.push_back(
        {range("Q", worker.queries), range("K, V", worker.keys), static_cast<int>(worker.of), worker.works,
         static_cast<double>(worker.met) / std::max(count, 1.0),
         say("keeps {}{}, holds {} of worker {}{}; {} of {:.0f} blocks folded in{}",
             range(said("queries"), worker.queries), texts(worker), range(said("keys and values"), worker.keys),
             worker.of, worker.works ? "" : said(", of which the mask leaves it none"), worker.met, count,
             cells > 0 ? say(", {:g} cells, {:.2f} × the mean", worker.cells, worker.cells / cells) : "")});
  }
  ring.remark = round.done == 0 ? said("Each holds its own keys and values. A round folds them in and passes them on.")
                                : say("{} sent by each worker{}", quantity(round.sent, "B"),
                                      idle ? say("; {} of {:.0f} have nothing to do: the mask{}", idle, count,
                                                 round.texts.size() > 2 ? said(", or another text's keys") : "")
                                           : "");
  return ring;
}

}  // namespace headscope
