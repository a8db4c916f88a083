# What `cmake --install` copies and how cpack makes packages of it: `cputrain`, and `cputrain-simulator` for simulate.
# Components have the names of the packages. scripts/package/deb does all of it by one command.
include(GNUInstallDirs)
set(CPUTRAIN_DATA ${CMAKE_INSTALL_DATADIR}/cputrain)
set(CPUTRAIN_DOC ${CMAKE_INSTALL_DATADIR}/doc/cputrain)
set(CPUTRAIN_MAN ${CMAKE_INSTALL_MANDIR}/man1)
set(CPUTRAIN_BASH ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
set(CPUTRAIN_ZSH ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
set(CPUTRAIN_PLUGINS lib/cputrain)  # the program looks in ../lib/cputrain, so not in a folder of the architecture
set(CPUTRAIN_SIMULATOR_DOC ${CMAKE_INSTALL_DATADIR}/doc/cputrain-simulator)

# Whatever umask somebody has who checks out, builds and installs: all users can enter folders and read files.
set(everybody_enters OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(everybody_reads OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)

# cputrain_make_folders(COMPONENT folder...): an install makes them before the files that are installed behind this.
function(cputrain_make_folders component)
  install(CODE "set(folders \"${ARGN}\")" COMPONENT ${component})
  install(SCRIPT ${PROJECT_SOURCE_DIR}/scripts/cmake/InstallFolders.cmake COMPONENT ${component})
endfunction()

# Manual page and completions, written from the table of flags. Only `all` makes them, so that a build of the target
# cputrain costs no more than before.
set(manual ${PROJECT_BINARY_DIR}/manual)
set(manual_files ${manual}/man/cputrain.1 ${manual}/bash/cputrain ${manual}/zsh/_cputrain)
add_custom_command(OUTPUT ${manual_files} COMMAND cputrain_manual ${manual} DEPENDS cputrain_manual
                   COMMENT "Manual page and completions" VERBATIM)
add_custom_target(cputrain_manual_pages ALL DEPENDS ${manual_files})

cputrain_make_folders(cputrain ${CMAKE_INSTALL_BINDIR} ${CPUTRAIN_MAN} ${CPUTRAIN_BASH} ${CPUTRAIN_ZSH} ${CPUTRAIN_DOC}
                      ${CPUTRAIN_DATA}/reference)
install(TARGETS cputrain RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT cputrain)
if(TARGET cputrain_cuda_plugin)
  cputrain_make_folders(cputrain ${CPUTRAIN_PLUGINS})
  install(TARGETS cputrain_cuda_plugin LIBRARY DESTINATION ${CPUTRAIN_PLUGINS} COMPONENT cputrain)
endif()
install(FILES ${manual}/man/cputrain.1 DESTINATION ${CPUTRAIN_MAN} COMPONENT cputrain)
install(FILES ${manual}/bash/cputrain DESTINATION ${CPUTRAIN_BASH} COMPONENT cputrain)
install(FILES ${manual}/zsh/_cputrain DESTINATION ${CPUTRAIN_ZSH} COMPONENT cputrain)
configure_file(${PROJECT_SOURCE_DIR}/scripts/package/changelog.in ${PROJECT_BINARY_DIR}/package/changelog @ONLY)
install(FILES ${PROJECT_SOURCE_DIR}/scripts/package/copyright ${PROJECT_BINARY_DIR}/package/changelog
        DESTINATION ${CPUTRAIN_DOC} COMPONENT cputrain)
# README.md and all guides lie as they do here, with what they link to, so that their links lead somewhere.
set(guides README.md CHANGELOG.md CONTRIBUTING.md datasets/tutorial.md src/composition/examples/train_cifar10.cpp
           src/scaling/simulation/platforms/skylake-96.json scripts/package/modulefile)
file(GLOB found CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src/zoo/samples/*.json)
list(APPEND guides ${found})
foreach(folder src backends datasets scripts tests)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/${folder}/README.md)
  list(APPEND guides ${found})
endforeach()
foreach(guide IN LISTS guides)
  get_filename_component(folder ${guide} DIRECTORY)
  list(APPEND guide_folders ${CPUTRAIN_DOC}/${folder})
endforeach()
list(REMOVE_DUPLICATES guide_folders)
cputrain_make_folders(cputrain ${guide_folders})
foreach(guide IN LISTS guides)
  get_filename_component(folder ${guide} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${guide} DESTINATION ${CPUTRAIN_DOC}/${folder} COMPONENT cputrain)
endforeach()
# But for what scripts/tables leaves there besides, which the folders' .gitignore names.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/results DESTINATION ${CPUTRAIN_DOC} COMPONENT cputrain
        PATTERN .gitignore EXCLUDE
        REGEX "/results/[^/]+/(accuracy|cells|clusters|sensitivity|lock|lock-extend|machine\\.json|plan\\.txt)$" EXCLUDE
        REGEX "/results/[^/]+/(sweep\\.json|published-whole-cores/costs\\.json)$" EXCLUDE
        REGEX "/report\\.(html|json|md|tex)$" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scripts/datasets DESTINATION ${CPUTRAIN_DOC}/scripts COMPONENT cputrain
        FILE_PERMISSIONS ${everybody_enters}
        PATTERN *.sh PERMISSIONS ${everybody_reads})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/zoo/samples/ DESTINATION ${CPUTRAIN_DATA}/models COMPONENT cputrain)
install(FILES ${PROJECT_SOURCE_DIR}/results/reference/paper_table3.csv DESTINATION ${CPUTRAIN_DATA}/reference
        COMPONENT cputrain)
if(TARGET cputrain-smpi)  # a shared object that smpirun starts like a program
  cputrain_make_folders(simulator ${CMAKE_INSTALL_BINDIR} ${CPUTRAIN_SIMULATOR_DOC})
  install(TARGETS cputrain-smpi LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT simulator
          PERMISSIONS ${everybody_enters})
  install(FILES ${PROJECT_SOURCE_DIR}/scripts/package/copyright ${PROJECT_BINARY_DIR}/package/changelog
          DESTINATION ${CPUTRAIN_SIMULATOR_DOC} COMPONENT simulator)
endif()

set(CPACK_PACKAGE_NAME cputrain)
set(CPACK_PACKAGE_VENDOR "the cputrain developers")
set(CPACK_PACKAGE_CONTACT "cputrain developers <cputrain@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${everybody_enters})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/scripts/cmake/DebianLayout.cmake)
set(CPACK_COMPONENTS_ALL cputrain)
if(TARGET cputrain-smpi)
  list(APPEND CPACK_COMPONENTS_ALL simulator)
endif()

# A package is for the system that it is built on, which its version names, such as 0.1.0-1~debian13.
cmake_host_system_information(RESULT built_on QUERY DISTRIB_INFO)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1~${built_on_ID}${built_on_VERSION_ID})
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_CPUTRAIN_PACKAGE_NAME cputrain)
set(CPACK_DEBIAN_CPUTRAIN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_CPUTRAIN_PACKAGE_SUGGESTS "cputrain-simulator, bash-completion")
# What is loaded with its first use: nothing is linked with it, so dpkg-shlibdeps does not see it.
get_property(late_libraries GLOBAL PROPERTY CPUTRAIN_LATE_LIBRARIES)
set(late_packages)
foreach(library IN LISTS late_libraries)
  get_filename_component(file ${library} REALPATH)
  execute_process(COMMAND dpkg-query -S ${file} OUTPUT_VARIABLE owner ERROR_QUIET)
  if(owner MATCHES "^([^:]+):")
    list(APPEND late_packages ${CMAKE_MATCH_1})
  endif()
endforeach()
list(REMOVE_DUPLICATES late_packages)
list(JOIN late_packages ", " CPACK_DEBIAN_CPUTRAIN_PACKAGE_RECOMMENDS)
if(CPUTRAIN_MPI AND MPI_EXECUTABLE_SUFFIX STREQUAL .mpich)
  set(CPACK_DEBIAN_CPUTRAIN_PACKAGE_DEPENDS mpich)
elseif(CPUTRAIN_MPI)
  set(CPACK_DEBIAN_CPUTRAIN_PACKAGE_DEPENDS openmpi-bin)  # mpirun
endif()
set(CPACK_COMPONENT_CPUTRAIN_DESCRIPTION "trainer of image classifiers on CPUs
cputrain trains image classifiers by synchronous allreduce SGD: on one core, on
all cores of a machine, or on a cluster by MPI. Batches are global, so the loss
curve does not depend on the number of processes. It measures how training
scales with CPUs and batch size, and makes tables of it.")
set(CPACK_DEBIAN_SIMULATOR_PACKAGE_NAME cputrain-simulator)
set(CPACK_DEBIAN_SIMULATOR_PACKAGE_SECTION science)
set(CPACK_DEBIAN_SIMULATOR_PACKAGE_DEPENDS
    "cputrain (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}), libsimgrid-dev")  # which has smpirun
set(CPACK_COMPONENT_SIMULATOR_DESCRIPTION "simulated machines and clusters for cputrain
The command cputrain simulate predicts how long training takes on machines that
are not here. It measures the layers of a network on this machine and simulates
memory and network by SimGrid's SMPI. This package holds the simulated program.")
include(CPack)
