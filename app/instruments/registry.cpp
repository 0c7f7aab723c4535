// The list of instruments. Each is a file of its own; here stands what it is called and where it is made.

#include "app/instruments/instrument.h"

namespace headscope {

std::unique_ptr<Instrument> make_head_ablation(Explorer&);

const std::vector<InstrumentEntry>& instrument_registry() {
  static const std::vector<InstrumentEntry> all = {
      {{"ablate", "Head ablation", "Cause and effect", "Michel et al. 2019",
        "Which heads does this text need? Every head is taken out in turn, and the prediction is compared with the "
        "whole model's.",
        "knock out remove heads effect atlas zero mean resample importance J7"},
       make_head_ablation},
  };
  return all;
}

}  // namespace headscope
