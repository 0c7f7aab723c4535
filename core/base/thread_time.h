#pragma once
// The processor time of the calling thread: how long it worked, whatever else the machine does meanwhile.

namespace headscope {

/// Seconds since some moment in this thread's past; where the system does not tell, wall time.
double thread_seconds();

}  // namespace headscope
