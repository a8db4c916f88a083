#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>

#include "backends/cpu/amx/kernels.h"

/// AMX for CPUs that lack it: each of its instructions traps, and is carried out from its bytes as
/// Intel's manual encodes them (volume 2, chapter 2.3 and the pages of the instructions).
namespace cputrain::cpu::amx::trapped {

/// What LDTILECFG set, and the tiles. Palette 0: none can be used.
struct Tiles {
  alignas(64) std::uint8_t configuration[64]{};
  alignas(64) std::uint8_t data[8][16][64]{};

  std::size_t rows(int tile) const { return configuration[48 + tile]; }
  std::size_t row_bytes(int tile) const {
    return configuration[16 + 2 * tile] + 256u * configuration[17 + 2 * tile];
  }
  bool is_whole(int tile) const {
    return configuration[0] == 1 && rows(tile) == 16 && row_bytes(tile) == 64;
  }
  /// Bytes 1 to 15, and those of tiles 8 to 15, must be zero.
  bool configure(const std::uint8_t* wanted) {
    std::memcpy(configuration, wanted, 64);
    std::memset(data, 0, sizeof data);
    bool zeros = true;
    for (int i = 1; i < 64; ++i) {
      const bool means_something = (i >= 16 && i < 32) || (i >= 48 && i < 56);
      zeros = zeros && (means_something || wanted[i] == 0);
    }
    return zeros && wanted[0] <= 1;
  }
};
inline thread_local Tiles tiles;

inline std::uint64_t number_in(const ucontext_t& context, unsigned number) {
  constexpr int kNames[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                              REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                              REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<std::uint64_t>(context.uc_mcontext.gregs[kNames[number]]);
}

/// C4; the inverted high bits of registers with the opcode's map, 2; the inverted third register
/// with the prefix. The opcode and its operands follow. Prefixes: 0 none, 1 66, 2 F3, 3 F2.
struct Instruction {
  const std::uint8_t* at;
  const ucontext_t& context;

  bool is_vex_of_map_2() const { return at[0] == 0xc4 && (at[1] & 31) == 2 && (at[2] & 0x84) == 0; }
  int key() const { return at[3] << 4 | (at[2] & 3); }
  int third() const { return ~at[2] >> 3 & 15; }
  int mode() const { return at[4] >> 6; }
  int reg() const { return at[4] >> 3 & 7; }
  int rm() const { return at[4] & 7; }
  bool has_sib() const { return mode() != 3 && rm() == 4; }
  bool has_base() const { return mode() != 0 || (has_sib() ? at[5] & 7 : rm()) != 5; }
  int bytes_of_displacement() const {
    return mode() == 3 ? 0 : !has_base() || mode() == 2 ? 4 : mode();
  }
  int length() const { return 5 + has_sib() + bytes_of_displacement(); }
  unsigned high(int bit) const { return (at[1] >> bit & 1) != 0 ? 0 : 8; }

  /// In memory: base, which is the next instruction or a register, and displacement. The scaled
  /// index is the distance of a tile's rows.
  std::uint8_t* address() const {
    const std::uint8_t* const next = at + length();
    std::int32_t displacement = 0;
    if (bytes_of_displacement() == 1) displacement = static_cast<std::int8_t>(next[-1]);
    if (bytes_of_displacement() == 4) std::memcpy(&displacement, next - 4, 4);
    const unsigned base = (has_sib() ? at[5] & 7 : rm()) | high(5);
    const auto from = has_base()  ? number_in(context, base)
                      : has_sib() ? 0
                                  : reinterpret_cast<std::uint64_t>(next);
    return reinterpret_cast<std::uint8_t*>(from + static_cast<std::uint64_t>(displacement + 0L));
  }
  std::uint64_t distance() const {
    const unsigned index = (at[5] >> 3 & 7) | high(6);
    return index == 4 ? 0 : number_in(context, index) << (at[5] >> 6);
  }
};

/// Whether it was one of AMX that may stand where it stands.
inline bool carry_out(const Instruction& i) {
  if (!i.is_vex_of_map_2()) return false;
  const int reg = i.reg();
  if (i.mode() == 3) {
    const int a = i.rm(), b = i.third();
    if (i.key() == 0x490 && i.at[4] == 0xc0) return tiles.configure(Tiles{}.configuration);
    if (!tiles.is_whole(reg)) return false;
    if (i.key() == 0x493) return std::memset(tiles.data[reg], 0, 1024) != nullptr;
    if (i.key() != 0x5c2 || b > 7 || !tiles.is_whole(a) || !tiles.is_whole(b)) return false;
    if (reg == a || reg == b || a == b) return false;
    avx512_kernels().multiply_add_once(reinterpret_cast<const Bf16*>(tiles.data[a]),
                                       reinterpret_cast<const Bf16*>(tiles.data[b]),
                                       reinterpret_cast<float*>(tiles.data[reg]));
    return true;
  }
  if (i.key() == 0x490 && reg == 0) return tiles.configure(i.address());
  if (i.key() == 0x491 && reg == 0) {
    return std::memcpy(i.address(), tiles.configuration, 64) != nullptr;
  }
  if ((i.key() != 0x4b2 && i.key() != 0x4b3) || !i.has_sib() || !tiles.is_whole(reg)) return false;
  for (std::size_t row = 0; row < 16; ++row) {
    std::uint8_t* const memory = i.address() + row * i.distance();
    if (i.key() == 0x4b3) std::memcpy(tiles.data[reg][row], memory, 64);
    if (i.key() == 0x4b2) std::memcpy(memory, tiles.data[reg][row], 64);
  }
  return true;
}

/// The instruction that trapped, and those of AMX right behind it.
inline void on_trap(int signal, siginfo_t*, void* given) {
  auto& context = *static_cast<ucontext_t*>(given);
  auto& next = context.uc_mcontext.gregs[REG_RIP];
  const auto first = next;
  while (true) {
    const Instruction instruction{reinterpret_cast<const std::uint8_t*>(next), context};
    if (!carry_out(instruction)) break;
    next += instruction.length();
  }
  if (next == first) ::signal(signal, SIG_DFL);  // it traps again, and ends the program
}

/// From here on, in all threads.
inline bool carry_out_traps() {
  struct sigaction action {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO;
  return ::sigaction(SIGILL, &action, nullptr) == 0;
}

}  // namespace cputrain::cpu::amx::trapped
