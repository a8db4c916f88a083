#include "backends/hdf5/without_library.h"

namespace cputrain::hdf5 {

std::string how_to_make_safetensors() {
  return "make safetensors of it in Python: import keras, safetensors.numpy; m = "
         "keras.saving.load_model('model.keras'); safetensors.numpy.save_file({l.name + '/' + "
         "w.name: w.numpy() for l in m.layers for w in l.weights}, 'weights.safetensors')";
}

}  // namespace cputrain::hdf5
