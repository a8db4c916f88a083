// The program cputrain.

#include "composition/program.h"

int main(int argc, char** argv) { return cputrain::composition::run_program(argc, argv); }
