// precompiled.h belongs to a target, and a target has a source.
