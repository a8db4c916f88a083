#include "backends/hdf5/without_library.h"

namespace cputrain::hdf5 {

std::string how_to_make_safetensors() {
  // Paths name the layers of networks within the network, too.
  return "make safetensors of it in Python: import keras, safetensors.numpy; m = "
         "keras.saving.load_model('model.keras'); safetensors.numpy.save_file({'/'.join("
         "w.path.split('/')[-2:]): w.numpy() for w in m.weights}, 'weights.safetensors')";
}

}  // namespace cputrain::hdf5
