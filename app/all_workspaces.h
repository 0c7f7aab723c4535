#pragma once
// Everything behind the tabs, wired together and handed to an App. Made after the App, it must outlive the last frame.

#include <algorithm>

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
        trials(parts.jobs),
        generation(parts.jobs, parts.editor, parts.run, parts.files),
        comparison(parts.jobs, parts.editor, parts.run, &training),
        positions_controller(parts.jobs, parts.editor, parts.run),
        corpus_controller(parts.jobs, parts.editor, parts.run),
        generate(generation),
        compare(comparison),
        positions(positions_controller),
        mechanisms(parts.jobs, parts.editor, parts.run),
        analyse(parts.jobs, parts.run),
        corpus(corpus_controller),
        train(training, trials) {
    // In the order of workspace_list.
    for (Workspace* each : std::initializer_list<Workspace*>{&explore, &generate, &compare, &positions, &mechanisms,
                                                             &analyse, &corpus, &train})
      app.add(*each);
  }
  AllWorkspaces(const AllWorkspaces&) = delete;
  AllWorkspaces& operator=(const AllWorkspaces&) = delete;

  /// What the command line asks the workspaces to begin with. Throws Error.
  void begin_with(const AppOptions& options) {
    if (const auto view = parse_mechanism_view(options.view)) mechanisms.controller().view = *view;
    if (!options.corpus.empty()) corpus_controller.begin_with(options.corpus);
    generation.write_at_once(options.generate_tokens);
    comparison.begin_with(options.with_model, options.with_text);
    if (!options.recipe.empty()) training.choose(options.recipe);
    const auto trial = std::ranges::find(trial_plans(), options.page, &TrialPlan::id);
    if (options.train_steps > 0 && trial != trial_plans().end()) {
      trials.start(with_steps(*trial, options.train_steps));
    } else if (options.train_steps > 0) {
      training.start();
      training.pause_at(options.train_steps);
    }
  }

  TrainingController training;
  TrialController trials;
  GenerationController generation;
  CompareController comparison;
  PositionsController positions_controller;
  CorpusController corpus_controller;
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
