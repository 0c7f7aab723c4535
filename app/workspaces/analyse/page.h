#pragma once
// An page of the Analyse workspace: one question that can be put to the model and text that are open. A new one
// is one file beside this one and its line in registry.cpp; catalogue, palette, `--page` and settings then know it.
// Pages do not know one another. Thread rule: the UI thread; what takes time is a job of the runner's worker
// (SceneSlot for pictures, ReadingJob and Answer for questions, SweepPage for sweeps).

#include <memory>
#include <string>
#include <vector>

#include "app/state/controls_record.h"
#include "app/widgets/ui.h"
#include "app/workspaces/page_context.h"

namespace headscope {

struct PageInfo {
  std::string id;        ///< "ablate": for `--page` and the settings; never changes
  std::string title;     ///< "Head ablation"
  std::string group;     ///< of the catalogue: "Cause and effect"
  std::string source;    ///< "Michel et al. 2019"; "" = none
  std::string sentence;  ///< what it answers, under the title
  std::string words;     ///< further words that find it
  /// Of an encoder-decoder: the stacks that it can be asked about beside the decoder.
  std::vector<Stack> besides = {};
  bool attention = false;  ///< asks about queries, keys, values or scores, which a state space has not
  bool cross = false;      ///< reads cross-attention, whichever stack is looked at: none is to be chosen
};

/// A session may be of another model than the one it is opened with: a layer that it names is kept inside by the page.
inline constexpr int most_layers = 1 << 20;

class Page {
 public:
  virtual ~Page() = default;
  /// Below the title and the sentence: the answer.
  virtual void middle(const PageContext& c) = 0;
  /// Inputs and controls, then numbers.
  virtual void right(const PageContext& c) = 0;
  /// Names what a session keeps of its controls; what belongs to one model or text does not.
  virtual void controls(ControlsRecord& r) { (void)r; }
  /// Once per frame, also while it is not on screen (`shown` false): keeps a sweep going.
  virtual void each_frame(JobRunner& jobs, const Results& results, bool shown) {
    (void)jobs, (void)results, (void)shown;
  }
};

struct PageEntry {
  PageInfo info;
  std::unique_ptr<Page> (*make)(JobRunner& jobs);  ///< which outlive it
};
/// All of them, in the order of the catalogue; entries of one group stand together.
const std::vector<PageEntry>& page_registry();

}  // namespace headscope
