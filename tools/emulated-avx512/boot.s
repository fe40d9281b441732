# What a PC does between reset and Linux, for tools/emulated-avx512.sh: .rom is the BIOS that the emulator starts. It reads three pieces
# from the first disk to where Linux's 32-bit boot protocol wants them, and jumps to the kernel. A BIOS and a boot loader would need a
# partitioned image, and packages and tools to make it.

    .intel_syntax noprefix
    .set SEGMENT, 0xffff0000            # where the CPU sees .rom
    .set PARAMETERS, 0x90000
    .set COMMAND_LINE, PARAMETERS + 0x1000
    .set KERNEL, 0x100000
    .set INITRAMFS, 0x8000000

    .section .rom, "ax"
rom:
    .code16
start:
    cli
    lgdtd cs:[descriptors_pointer - rom]
    mov eax, 1                          # protected mode
    mov cr0, eax
    .byte 0x66, 0xea                    # a far jump to CODE:protected, which the assembler has no word for
    .long protected - rom + SEGMENT
    .word 0x10

    .balign 8
descriptors:                            # none, none, code and data of 4 GiB, as the protocol numbers them
    .quad 0, 0, 0x00cf9b000000ffff, 0x00cf93000000ffff
descriptors_pointer:
    .word descriptors_pointer - descriptors - 1
    .long descriptors - rom + SEGMENT

pieces:                                 # address, first sector, sector after the last
    .long PARAMETERS, 0, parameter_sectors
    .long KERNEL, parameter_sectors, parameter_sectors + kernel_sectors
    .long INITRAMFS, parameter_sectors + kernel_sectors, parameter_sectors + kernel_sectors + initramfs_sectors
pieces_end:

    .code32
protected:
    mov eax, 0x18
    mov ds, eax
    mov es, eax
    mov ss, eax
    cld
    mov esi, offset pieces - rom + SEGMENT
piece:
    mov edi, [esi]
    mov ebx, [esi + 4]
sector:                                 # ebx, from the ATA disk to edi, by programmed input
    mov dx, 0x1f2
    mov al, 1                           # one sector
    out dx, al
    inc edx
    mov eax, ebx
    out dx, al
    inc edx
    shr eax, 8
    out dx, al
    inc edx
    shr eax, 8
    out dx, al
    inc edx
    mov al, 0xe0                        # first disk, numbered sectors
    out dx, al
    inc edx
    mov al, 0x20                        # read
    out dx, al
busy:
    in al, dx
    test al, 8                          # data are ready
    jz busy
    mov dx, 0x1f0
    mov ecx, 128
    rep insd
    inc ebx
    cmp ebx, [esi + 8]
    jne sector
    add esi, 12
    cmp esi, offset pieces_end - rom + SEGMENT
    jne piece

    xor ebx, ebx
    xor ebp, ebp
    xor edi, edi
    mov esi, PARAMETERS
    mov eax, KERNEL
    jmp eax

    .org 0xfff0                         # the CPU's first instruction
    .code16
    jmp start
    .org 0x10000

# The boot protocol's `boot_params`: most of it is the header in the kernel's file.
    .section .parameters, "a"
    .org 0x1e8
    .byte 2                             # ranges of memory
    .org 0x1f1
    .incbin "vmlinuz", 0x1f1, 0x210 - 0x1f1
    .byte 0xff, 1                       # a loader without a number; the kernel lies at 1 MiB
    .incbin "vmlinuz", 0x212, 0x218 - 0x212
    .long INITRAMFS, initramfs_sectors * 512
    .incbin "vmlinuz", 0x220, 0x228 - 0x220
    .long COMMAND_LINE
    .incbin "vmlinuz", 0x22c, 0x290 - 0x22c
    .org 0x2d0
    .quad 0, 0x9f000
    .long 1
    .quad KERNEL, memory_bytes - KERNEL
    .long 1
    .org 0x1000
    # A panic ends in a triple fault, and that ends the emulator.
    .asciz "console=ttyS0,115200 loglevel=1 rdinit=/init acpi=off nokaslr mitigations=off tsc=reliable panic=-1 reboot=triple"
    .balign 512
