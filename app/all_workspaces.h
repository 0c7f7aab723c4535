#pragma once
// Everything behind the tabs, wired together and handed to an App. Made after the App, it must outlive the last frame.

#include "app/window/app.h"
#include "app/workspaces/analyse/analyse_workspace.h"
#include "app/workspaces/compare/compare_workspace.h"
#include "app/workspaces/corpus/corpus_workspace.h"
#include "app/workspaces/explore/explore_workspace.h"
#include "app/workspaces/generate/generate_workspace.h"
#include "app/workspaces/mechanisms/mechanisms_workspace.h"
#include "app/workspaces/positions/positions_workspace.h"
#include "app/workspaces/train/train_workspace.h"

namespace headscope {

class AllWorkspaces {
 public:
  explicit AllWorkspaces(App& app) : AllWorkspaces(app, app.explorer()) {}
  AllWorkspaces(App& app, Explorer& parts)
      : training(parts.jobs, parts.editor, parts.run),
        generation(parts.jobs, parts.editor, parts.run, parts.files),
        comparison(parts.jobs, parts.editor, parts.run, &training),
        positions_desk(parts.jobs, parts.editor, parts.run),
        corpus_desk(parts.jobs, parts.editor, parts.run),
        generate(generation),
        compare(comparison),
        positions(positions_desk),
        mechanisms(parts.jobs, parts.editor, parts.run),
        analyse(parts.jobs, parts.run),
        corpus(corpus_desk),
        train(training) {
    // In the order of workspace_list.
    for (Workspace* each : std::initializer_list<Workspace*>{&explore, &generate, &compare, &positions, &mechanisms,
                                                             &analyse, &corpus, &train})
      app.add(*each);
  }
  AllWorkspaces(const AllWorkspaces&) = delete;
  AllWorkspaces& operator=(const AllWorkspaces&) = delete;

  /// What the command line asks the workspaces to begin with. Throws Error.
  void begin_with(const AppOptions& options) {
    if (const auto view = parse_mechanism_view(options.view)) mechanisms.desk().view = *view;
    if (!options.corpus.empty()) corpus_desk.begin_with(options.corpus);
    generation.write_at_once(options.generate_tokens);
    comparison.begin_with(options.with_model, options.with_text);
    if (!options.recipe.empty()) training.choose(options.recipe);
    if (options.train_steps > 0) {
      training.start();
      training.pause_at(options.train_steps);
    }
  }

  TrainingDesk training;
  GenerationDesk generation;
  CompareDesk comparison;
  PositionsDesk positions_desk;
  CorpusDesk corpus_desk;
  ExploreWorkspace explore;
  GenerateWorkspace generate;
  CompareWorkspace compare;
  PositionsWorkspace positions;
  MechanismsWorkspace mechanisms;
  AnalyseWorkspace analyse;
  CorpusWorkspace corpus;
  TrainWorkspace train;
};

}  // namespace headscope
