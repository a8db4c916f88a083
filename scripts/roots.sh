# shellcheck shell=bash
# Sourced by scripts that try the project in a bare root of another system, which debootstrap makes, or take a package of
# another release of Debian. CPUTRAIN_MIRROR names a mirror in the place of the one that this machine's apt has.

# suites: names that debootstrap knows, and what people call them.
declare -A suites=([bookworm]='Debian 12' [trixie]='Debian 13' [noble]='Ubuntu 24.04')

# read_suite WORD...  sets `suite` to the first word where it names one (else bookworm), and `words` to the others.
# shellcheck disable=SC2034  # those who source this read them
read_suite() {
  suite=bookworm
  if [[ -n ${1-} && -n ${suites[$1]-} ]]; then
    suite=$1
    shift
  elif [[ ${1-} =~ ^[a-z0-9.]+$ && ! -d $1 ]]; then
    wrong_use "unknown suite $1; allowed are ${!suites[*]} (a folder with that name is ./$1)"
  fi
  words=("$@")
}

# mirror_of Debian|Ubuntu  where this machine's apt gets packages of it from; nothing where it does not.
mirror_of() {
  # shellcheck disable=SC2016  # apt expands these
  apt-get indextargets --format '$(ORIGIN) $(RELEASE) $(CREATED_BY) $(REPO_URI)' 2>/dev/null |
    awk -v origin="$1" '$1 == origin && $2 !~ /-/ && $3 == "Packages" { print $4; exit }' || true
}

# fetch_debian SUITE COMPONENT PACKAGE FOLDER  unpacks a package of another release of Debian; the system's own lists
# stay as they are. Ends with 1 and a line where that is not possible.
fetch_debian() {
  local keys=/usr/share/keyrings/debian-archive-keyring.gpg apt=$4.apt mirror
  mirror=$(mirror_of Debian)
  if [[ -z $mirror || ! -f $keys ]]; then
    echo "$(basename "$0"): this machine's apt has no Debian to fetch $3 from" >&2
    return 1
  fi
  mkdir -p "$apt"/{lists,cache/archives}/partial
  echo "deb [signed-by=$keys] $mirror $1 $2" >"$apt/sources.list"
  : >"$apt/status"
  local options=(-qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
                 -o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache"
                 -o APT::Sandbox::User=)
  apt-get "${options[@]}" update &&
    (cd "$apt" && apt-get "${options[@]}" download "$3") &&
    dpkg-deb -x "$apt/$3"_*.deb "$4" &&
    rm -rf "$apt"
}

# ubuntu_keys FOLDER  the file of Ubuntu's keys: this machine's, else that of Debian 13's package, put into FOLDER.
ubuntu_keys() {
  local keys=usr/share/keyrings/ubuntu-archive-keyring.gpg
  if [[ -f /$keys ]]; then
    echo "/$keys"
  else
    fetch_debian trixie main ubuntu-keyring "$1" >&2 && echo "$1/$keys"
  fi
}

# make_root SUITE FOLDER  a bare root that can install packages: with this machine's proxies, certificates and names.
make_root() {
  local mirror=${CPUTRAIN_MIRROR-} components=main options=(--variant=minbase) script=() path work failed=false
  work=$(mktemp -d)
  if [[ $1 == noble ]]; then
    mirror=${mirror:-$(mirror_of Ubuntu)} components=main,universe
    options+=(--keyring="$(ubuntu_keys "$work/keys")") || return 1
    [[ -e /usr/share/debootstrap/scripts/$1 ]] || script=(gutsy)  # what all of Ubuntu has been since
  else
    mirror=${mirror:-$(mirror_of Debian)}
  fi
  debootstrap "${options[@]}" --components="$components" "$1" "$2" "$mirror" "${script[@]}" >"$work/log" 2>&1 ||
    failed=true
  ! $failed || tail "$work/log" >&2
  rm -rf "$work"
  ! $failed || return 1
  sed -i -E "p; s/^(deb +[^ ]+ +$1) /\1-updates /" "$2/etc/apt/sources.list"
  for path in /etc/apt/apt.conf.d /etc/apt/auth.conf.d /etc/ssl/certs /usr/local/share/ca-certificates \
              /etc/resolv.conf /etc/hosts; do
    [[ ! -e $path ]] || { mkdir -p "$2$(dirname "$path")"; cp -aL "$path" "$2$(dirname "$path")"; }
  done
}

# mount_root ROOT  a mount of its own, so that namespaces can be made inside, with what the kernel shows as files. In a
# mount namespace of the caller's.
mount_root() {
  mount --bind "$1" "$1"
  mount -t proc proc "$1/proc"
  mount --rbind /sys "$1/sys"
  mount --rbind /dev "$1/dev"
}
