# Included behind project(): every target has the switch.
add_library(mutation_switch STATIC ${CMAKE_CURRENT_LIST_DIR}/switch.cpp)
set_target_properties(mutation_switch PROPERTIES POSITION_INDEPENDENT_CODE ON)
link_libraries(mutation_switch)
