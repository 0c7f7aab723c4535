#pragma once
// What a session keeps of the controls behind each workspace. What belongs to one model, text or run does not:
// positions of a text, moments of a training.

#include "app/state/controls_record.h"

namespace headscope {

class CompareDesk;
class CorpusDesk;
class GenerationDesk;
class MechanismDesk;
class PositionsDesk;
class TrainingDesk;

void controls_of(GenerationDesk& desk, ControlsRecord& record);
void controls_of(CompareDesk& desk, ControlsRecord& record);
void controls_of(PositionsDesk& desk, ControlsRecord& record);
/// Which mechanism is chosen is the workspace's page.
void controls_of(MechanismDesk& desk, ControlsRecord& record);
void controls_of(CorpusDesk& desk, ControlsRecord& record);
void controls_of(TrainingDesk& desk, ControlsRecord& record);

}  // namespace headscope
