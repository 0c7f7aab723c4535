#pragma once
// What a session keeps of the controls behind each workspace. What belongs to one model, text or run does not:
// positions of a text, moments of a training.

#include "app/state/controls_record.h"

namespace headscope {

class CompareController;
class CorpusController;
class GenerationController;
class MechanismController;
class PositionsController;
class TrainingController;

void controls_of(GenerationController& controller, ControlsRecord& record);
void controls_of(CompareController& controller, ControlsRecord& record);
void controls_of(PositionsController& controller, ControlsRecord& record);
/// Which mechanism is chosen is the workspace's page.
void controls_of(MechanismController& controller, ControlsRecord& record);
void controls_of(CorpusController& controller, ControlsRecord& record);
void controls_of(TrainingController& controller, ControlsRecord& record);

}  // namespace headscope
