//! The instruction `cpuid`, by which an x86 CPU describes itself.

/// Returns the registers `eax` to `edx`; zeros on other machines, and under Miri, which executes no
/// assembly.
pub(super) fn cpuid(leaf: u32, index: u32) -> [u32; 4] {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    #[cfg(not(any(miri, target_env = "sgx")))]
    {
        #[cfg(target_arch = "x86")]
        use core::arch::x86::__cpuid_count;
        #[cfg(target_arch = "x86_64")]
        use core::arch::x86_64::__cpuid_count;
        // SAFETY: every CPU of these targets has the instruction and accepts unknown leaves.
        #[allow(unused_unsafe, reason = "safe since Rust 1.94")]
        let found = unsafe { __cpuid_count(leaf, index) };
        return [found.eax, found.ebx, found.ecx, found.edx];
    }
    #[allow(unreachable_code, reason = "not on x86")]
    [(leaf, index); 4].map(|_| 0)
}

/// Returns the size of the second-level cache in bytes.
#[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), not(target_env = "sgx")))]
pub(super) fn second_level() -> Option<usize> {
    // AMD uses Intel's layout in a different leaf.
    let has_amd =
        cpuid(0x8000_0000, 0)[0] >= 0x8000_001d && cpuid(0x8000_0001, 0)[2] >> 22 & 1 == 1;
    let leaf = match has_amd {
        true => 0x8000_001d,
        false if cpuid(0, 0)[0] >= 4 => 4,
        false => return None,
    };
    let size = |[_, ebx, ecx, _]: [u32; 4]| {
        let [ways, partitions, line] = [ebx >> 22, ebx >> 12 & 0x3ff, ebx & 0xfff];
        [ways, partitions, line, ecx].into_iter().try_fold(1, |size: usize, less_one| {
            size.checked_mul((less_one as usize).checked_add(1)?)
        })
    };
    let caches = (0..8).map(|index| cpuid(leaf, index)).take_while(|cache| cache[0] & 31 != 0);
    caches.filter(|cache| cache[0] >> 5 & 7 == 2).find_map(size)
}
