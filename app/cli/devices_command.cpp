// headscope-cli devices: what can compute here, and why a card cannot.

#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/report.h"
#include "core/base/memory.h"
#include "core/tensor/backend.h"

namespace headscope::cli {

namespace {
std::string memory_cell(std::uint64_t bytes) {
  return bytes ? memory_text(static_cast<double>(bytes)) : "";
}

Report devices_report(Backend& processor, const Cards& cards) {
  Report out;
  Report::Table& table = out.table("devices", {{"device", "--device"},
                                               "name",
                                               for_people("memory"),
                                               for_people("free"),
                                               only_in(Form::scripts, "memory_bytes"),
                                               only_in(Form::scripts, "free_bytes"),
                                               {"compute_capability", "compute capability"},
                                               {"usable", "usable"},
                                               only_in(Form::scripts, "threads"),
                                               only_in(Form::scripts, "why_not")});
  const std::uint64_t memory = machine_memory(), free = available_memory();
  table.add({"cpu", processor.described(), memory_cell(memory), memory_cell(free), memory, free, nullptr, "yes",
             processor.pool().threads(), ""});
  for (const CudaDevice& card : cards.found)
    table.add({fmt::format("cuda:{}", card.index), card.name, memory_cell(card.memory), memory_cell(card.free),
               card.memory, card.free, fmt::format("{}.{}", card.major, card.minor),
               card.unusable.empty() ? "yes" : "no", nullptr, card.unusable});
  for (const CudaDevice& card : cards.found)
    if (!card.unusable.empty()) out.line(fmt::format("cuda:{} cannot be used: {}.", card.index, card.unusable));
  if (!cards.why_none.empty()) out.line(fmt::format("No card: {}.", cards.why_none));
  if (const std::string versions = cuda_versions(); !versions.empty()) out.line(versions + ".");
  out.data("why_no_card", cards.why_none);
  out.data("cuda", cuda_versions());
  return out;
}
}  // namespace

void add_devices(Command& app, Console& console) {
  struct Options {
    bool csv = false, json = false;
  };
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("devices", "What can compute here: the processor, and every card");
  const Option csv = command.add_flag("--csv", options->csv, "CSV instead of a table");
  command.add_flag("--json", options->json, "JSON instead of a table").excludes(csv);
  command.does([options, &console] {
    const Form form = options->json ? Form::json : options->csv ? Form::csv : Form::text;
    Backend processor(console.threads);
    console.print(devices_report(processor, console.devices.cards(true)).printed(form));
  });
}

}  // namespace headscope::cli
