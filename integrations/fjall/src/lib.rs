//! Patches for fjall, in `patches/`. The package `patched` tests them.
