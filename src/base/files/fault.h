// Places that tests stop a program at, beside the calls of base/files/file.h: UCAS_FAULT=step:3:0:stop stops the
// process (SIGSTOP) once the third line of steps.jsonl is written, where a test ends it or lets it go on; ":kill" kills
// it there, ":exit" ends it with 70 and no word, ":throw" is an Error(ErrorKind::io, exit 74), ":hang" never comes
// back. Costs one branch.
#pragma once

namespace ucas {

void fault_point(const char* op);

}  // namespace ucas
