"""The modules of a source tree: what they include, what their CMake targets link, and what src/README.md draws."""
import fnmatch
import os
import re
from collections import defaultdict

SOURCES = (".h", ".cpp", ".inl", ".cpp.in", ".cu", ".cuh")
TOPS = ("src", "backends", "datasets")
MOST_FILES = 30  # in a folder
MOST_ROOMS = 18  # folders directly in src, each a module or a wing of modules; weights was in five of them
ADAPTERS = "adapters"  # in the picture: all of backends and datasets


def module_of(path, nested=()):
    """`core` of src/core/x.h, `scaling/cells` of src/scaling/cells/x.h where that is one of `nested`, `main.cpp` of
    src/main.cpp, `backends/cpu` of backends/cpu/ops/x.h, `datasets`."""
    top, *rest = path.split("/")
    if top == "src" and "/".join(rest[:2]) in nested:
        return "/".join(rest[:2])
    return {"src": rest[0], "backends": f"backends/{rest[0]}"}.get(top, top)


def is_adapter(module):
    return module == "datasets" or module.startswith("backends/")


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = []
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(f for f in folders if not re.match(r"build|\.git$|runs$|sweeps$", f))
            self.files += sorted(os.path.relpath(os.path.join(folder, n), root) for n in names)
        self.sources = [f for f in self.files if f.startswith(TOPS) and f.endswith(SOURCES) and f.count("/")]
        self.nested = {os.path.dirname(f)[len("src/"):] for f in self.files
                       if re.fullmatch(r"src/\w+/\w+/CMakeLists\.txt", f) and "cputrain_add_module" in self.text(f)}
        self.modules = {self.module_of(f) for f in self.sources}
        self.edges = self.read_edges()
        self.links = self.read_links()
        self.picture = self.read_picture()

    def module_of(self, path):
        return module_of(path, self.nested)

    def text(self, path):
        with open(os.path.join(self.root, path), errors="replace") as file:
            return file.read()

    def read_edges(self):
        """The include lines by (module, module that is included)."""
        edges, known = defaultdict(list), set(self.sources)
        for path in self.sources:
            for number, line in enumerate(self.text(path).splitlines(), 1):
                found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
                target = found and (f"src/{found[1]}" if f"src/{found[1]}" in known else found[1])
                if target in known and self.module_of(target) != self.module_of(path):
                    edges[self.module_of(path), self.module_of(target)].append(f'{path}:{number}: #include "{found[1]}"')
        return edges

    def read_links(self):
        """The modules of src that the CMake target of a module links. The target of scaling/cells is cputrain_cells,
        and that of scaling/commands cputrain_scaling_commands, since cli has commands, too."""
        links, own = {}, [module for module in self.modules if not is_adapter(module)]
        last = [module.rpartition("/")[2] for module in own]
        modules = {name if last.count(name) == 1 else module.replace("/", "_"): module
                   for module, name in zip(own, last)}
        for path in self.files:
            if not path.startswith(TOPS) or os.path.basename(path) != "CMakeLists.txt":
                continue
            text = re.sub(r"#.*", "", self.text(path))
            for name, words in re.findall(r"cputrain_add_module\((\w+)([^)]*)\)", text):
                linked = re.findall(r"\w+", words.partition("LINKS")[2])
                links[modules.get(name, name)] = {modules.get(link, link) for link in linked}
            if is_adapter(self.module_of(path)):
                words = " ".join(re.findall(r"target_link_libraries\(([^)]*)\)", text))
                linked = {modules.get(link) for link in re.findall(r"\bcputrain_(\w+)", words)}
                links[self.module_of(path)] = linked & self.modules
        return links

    def read_picture(self):
        """The table below `module  uses  what is in it`, indented or between fences: what each module uses, from the
        bottom up."""
        picture, lines = {}, iter(self.text("src/README.md").splitlines())
        for line in lines:
            head = re.match(r"( *)module +uses +what", line)
            if head:
                break
        for line in lines:
            row = re.match(head[1] + r"(\S+) +(\S+(?:, \S+)*)(?: {2,}|$)", line)
            if row and not line.startswith("`"):
                picture[row[1]] = [] if row[2] == "-" else row[2].split(", ")
            elif not line.startswith(" "):
                break
        return picture

    def below(self, uses, graph):
        """What these use, in turns, themselves included."""
        seen, todo = set(), list(uses)
        while todo:
            module = todo.pop()
            if module == ADAPTERS:
                todo += [m for m in self.modules if is_adapter(m)]
            elif module not in seen:
                seen.add(module)
                todo += graph.get(module, ())
        return seen


def cycles(tree):
    """Each cycle of modules, with an include line of every edge."""
    graph = defaultdict(list)
    for a, b in sorted(tree.edges):
        graph[a].append(b)
    done, problems = set(), []

    def visit(module, path):
        if module in path:
            ring = path[path.index(module):] + [module]
            lines = [f"\n    {a} -> {b}: {tree.edges[a, b][0]}" for a, b in zip(ring, ring[1:])]
            problems.append(f"a cycle of modules: {' -> '.join(ring)}{''.join(lines)}")
        elif module not in done:
            for other in graph[module]:
                visit(other, [*path, module])
            done.add(module)

    for module in sorted(graph):
        visit(module, [])
    return problems


def against_picture(tree):
    problems = []
    for module in sorted(tree.modules - tree.picture.keys()):
        problems.append(f"src/README.md: {module} is not in the picture of modules")
    seen = set()
    for module, uses in tree.picture.items():
        if module not in tree.modules:
            problems.append(f"src/README.md: the picture has {module}, the tree does not")
        for other in uses:
            if other == ADAPTERS:
                continue
            if other not in seen:
                problems.append(f"src/README.md: {module} uses {other}, which must stand above it")
            elif (module, other) not in tree.edges:
                problems.append(f"src/README.md: {module} uses {other}, but no file includes anything of it")
        seen.add(module)
    for (a, b), lines in sorted(tree.edges.items()):
        if a in tree.picture and b not in tree.below(tree.picture[a], tree.picture):
            problems.append(f"{lines[0]}\n    src/README.md does not let {a} use {b}")
    return problems


def against_links(tree):
    problems = []
    for module, links in sorted(tree.links.items()):
        place = module if is_adapter(module) else f"src/{module}"
        for other in sorted(links):
            if (module, other) not in tree.edges:
                problems.append(f"{place}/CMakeLists.txt links {other}, which no file of the folder includes")
        for (a, b), lines in sorted(tree.edges.items()):
            if a == module and not is_adapter(b) and b not in tree.below(links, tree.links):
                problems.append(f"{lines[0]}\n    {place}/CMakeLists.txt does not link {b}")
    return problems


# What belongs to adapters: MPI, NCCL, CUDA, oneDNN, TBB, OpenMP, SimGrid, ONNX, protobuf, libmd, libcsv, zlib,
# libarchive, codecs.
FOREIGN = re.compile(
    r'\s*#\s*include\s*[<"]((mpi|nccl|omp|cu[a-z0-9_]+|dnnl[a-z_]*|turbojpeg|jpeglib|jerror|(libpng/)?png|tiff[a-z]*|hdf5'
    r"|(stb/)?stb_[a-z_]+|hwloc|zlib|md5|sha2|csv|archive(_entry)?)\.h|(oneapi|tbb|webp|libheif|libde265|dav1d|smpi|simgrid|cub|thrust|onnx|google)/)")


def foreign_headers(tree):
    return [f"{path}:{number}: {line.strip()}\n    src/ names no library of the adapters"
            for path in tree.sources if path.startswith("src/")
            for number, line in enumerate(tree.text(path).splitlines(), 1) if FOREIGN.match(line)]


def namespace_of(module):
    """core and main.cpp are the vocabulary of all; an adapter's is the name of its folder."""
    name = module.rpartition("/")[2]
    return "cputrain" if name in ("core", "main.cpp") else f"cputrain::{name}"


# The simulator's program has a node.cpp and a session.cpp in place of backends/mpi's.
REPLACEMENTS = "backends/sim"


def foreign_namespaces(tree):
    """Files that define something and never open the namespace of their folder."""
    problems = []
    for path in tree.sources:
        opened = re.findall(r"^(?:inline )?namespace (cputrain[\w:]*) \{", tree.text(path), re.M)
        module = tree.module_of(path)
        wanted = namespace_of(module)
        if not opened or any(o == wanted or o.startswith(wanted + "::") for o in opened):
            continue
        if module == REPLACEMENTS and {o.split("::")[1] for o in opened if "::" in o} <= {"mpi"}:
            continue
        problems.append(f"{path}: is in namespace {opened[0]}, not {wanted}")
    return problems


def types_named_twice(tree):
    """Types of one name in one namespace, those of tests included. They break the one definition rule: the linker
    keeps the functions of one for both, and no compiler says so."""
    files = defaultdict(list)
    for path in tree.files:
        if not path.startswith((*TOPS, "tests")) or not path.endswith(SOURCES):
            continue
        namespace, text = "", re.sub(r"^namespace \{$.*?^\}  // namespace$", "", tree.text(path), flags=re.M | re.S)
        for opened, name in re.findall(r"^(?:inline )?namespace ([\w:]+) \{|^(?:struct|class|enum class) "
                                       r"(?:alignas\([^)]*\) )?(\w+)(?: final)?(?:\s*:[^:{;][^{;]*)?\s*\{", text, re.M):
            if opened:
                namespace = opened if opened.startswith("cputrain") else f"{namespace}::{opened}"
            else:
                files[f"{namespace}::{name}"].append(path)
    return [f"{name} is defined in " + " and ".join(paths) for name, paths in sorted(files.items()) if len(paths) > 1]


def full_folders(tree):
    counts = defaultdict(int)
    for path in tree.sources:
        counts[os.path.dirname(path)] += 1
    return [f"{folder} has {n} source files, more than {MOST_FILES}: a part of them is a folder of its own"
            for folder, n in sorted(counts.items()) if n > MOST_FILES]


def folders_in_circles(tree):
    """Folders of src that include each other."""
    found, known = defaultdict(list), set(tree.sources)
    for path in tree.sources:
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', tree.text(path), re.M):
            pair = os.path.dirname(path), os.path.dirname(f"src/{name}")
            if path.startswith("src/") and f"src/{name}" in known and pair[0] != pair[1]:
                found[pair].append(f"{path} includes {name}")
    return [f"{a} and {b} include each other: {lines[0]}, {found[b, a][0]}"
            for (a, b), lines in sorted(found.items()) if a < b and (b, a) in found]


def too_many_rooms(tree):
    rooms = {path.split("/")[1] for path in tree.sources if path.startswith("src/") and path.count("/") > 1}
    return [f"src has {len(rooms)} folders, more than {MOST_ROOMS}"] if len(rooms) > MOST_ROOMS else []


def alternatives(word):
    """`a.{h,cpp}` is a.h and a.cpp."""
    found = re.match(r"(.*)\{([^{}]*)\}(.*)", word)
    return [found[1] + part + found[3] for part in found[2].split(",")] if found else [word]


def missing_paths(tree, document, whole):
    """Paths in backticks that lead nowhere. `whole`: all begin at the root. Otherwise they may begin in src, and a bare
    name may be that of a file anywhere."""
    tops = {f.split("/")[0] for f in tree.files if "/" in f}
    folders = {f[:i] for f in tree.files for i, c in enumerate(f) if c == "/"}
    places = folders | set(tree.files)
    problems = []
    for number, line in enumerate(tree.text(document).splitlines(), 1):
        for word in re.findall(r"`([\w./{},*-]+)`", line):
            is_file = re.search(r"\.(h|cpp|inl|py|js|cmake|md|in|\{[\w,]+\})$", word)
            if whole and (word.split("/")[0] not in tops or "/" not in word):
                continue
            if word.startswith(("-", "/", "./")) or not (is_file or "/" in word):
                continue
            for path in alternatives(word.rstrip("/")):
                tries = [path] if whole else [path, f"src/{path}"] + ([f"*/{path}"] if "/" not in path else [])
                if not any(fnmatch.filter(places, t) if "*" in t else t in places for t in tries):
                    problems.append(f"{document}:{number}: there is no {path}")
    return problems
