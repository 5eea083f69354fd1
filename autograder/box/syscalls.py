"""System call numbers of x86_64 and aarch64, and the groups that the box allows or denies.

The numbers are those of the kernel's own tables (arch/x86/entry/syscalls/syscall_64.tbl and
include/uapi/asm-generic/unistd.h, which aarch64 uses); tests/test_lockdown.py compares them with the headers.
"""

# name, number on x86_64, number on aarch64; "-" where the architecture has no such call
_TABLE = """
_sysctl 156 -                   | accept 43 202                   | accept4 288 242
access 21 -                     | acct 163 89                     | add_key 248 217
adjtimex 159 171                | alarm 37 -                      | arch_prctl 158 -
bind 49 200                     | bpf 321 280                     | brk 12 214
capget 125 90                   | capset 126 91                   | chmod 90 -
chown 92 -                      | chroot 161 51                   | clock_adjtime 305 266
clock_getres 229 114            | clock_gettime 228 113           | clock_nanosleep 230 115
clock_settime 227 112           | clone 56 220                    | clone3 435 435
close 3 57                      | close_range 436 436             | connect 42 203
creat 85 -                      | delete_module 176 106           | dup 32 23
dup2 33 -                       | dup3 292 24                     | epoll_create 213 -
epoll_create1 291 20            | epoll_ctl 233 21                | epoll_pwait 281 22
epoll_wait 232 -                | eventfd 284 -                   | eventfd2 290 19
execve 59 221                   | execveat 322 281                | exit 60 93
exit_group 231 94               | faccessat 269 48                | faccessat2 439 439
fanotify_init 300 262           | fanotify_mark 301 263           | fchmod 91 52
fchmodat 268 53                 | fchmodat2 452 452               | fchown 93 55
fchownat 260 54                 | fcntl 72 25                     | fdatasync 75 83
file_setattr 469 469            | finit_module 313 273            | fork 57 -
fremovexattr 199 16             | fsconfig 431 431                | fsetxattr 190 7
fsmount 432 432                 | fsopen 430 430                  | fspick 433 433
fstat 5 80                      | fsync 74 82                     | ftruncate 77 46
futex 202 98                    | futex_waitv 449 449             | futimesat 261 -
get_mempolicy 239 236           | getcpu 309 168                  | getcwd 79 17
getdents 78 -                   | getdents64 217 61               | getegid 108 177
geteuid 107 175                 | getgid 104 176                  | getgroups 115 158
getitimer 36 102                | getpgid 121 155                 | getpgrp 111 -
getpid 39 172                   | getppid 110 173                 | getpriority 140 141
getrandom 318 278               | getresgid 120 150               | getresuid 118 148
getrlimit 97 163                | getrusage 98 165                | getsid 124 156
gettid 186 178                  | gettimeofday 96 169             | getuid 102 174
init_module 175 105             | inotify_init 253 -              | inotify_init1 294 26
io_destroy 207 1                | io_setup 206 0                  | io_submit 209 2
io_uring_enter 426 426          | io_uring_register 427 427       | io_uring_setup 425 425
ioctl 16 29                     | ioperm 173 -                    | iopl 172 -
ioprio_set 251 30               | kcmp 312 272                    | kexec_file_load 320 294
kexec_load 246 104              | keyctl 250 219                  | kill 62 129
landlock_add_rule 445 445       | landlock_create_ruleset 444 444 | landlock_restrict_self 446 446
lchown 94 -                     | link 86 -                       | linkat 265 37
listen 50 201                   | lookup_dcookie 212 18           | lremovexattr 198 15
lseek 8 62                      | lsetxattr 189 6                 | lstat 6 -
madvise 28 233                  | mbind 237 235                   | membarrier 324 283
memfd_create 319 279            | memfd_secret 447 447            | migrate_pages 256 238
mincore 27 232                  | mkdir 83 -                      | mkdirat 258 34
mknod 133 -                     | mknodat 259 33                  | mlock 149 228
mlock2 325 284                  | mmap 9 222                      | modify_ldt 154 -
mount 165 40                    | mount_setattr 442 442           | move_mount 429 429
move_pages 279 239              | mprotect 10 226                 | mq_open 240 180
mq_unlink 241 181               | mremap 25 216                   | msgctl 71 187
msgget 68 186                   | msgrcv 70 188                   | msgsnd 69 189
msync 26 227                    | munlock 150 229                 | munmap 11 215
name_to_handle_at 303 264       | nanosleep 35 101                | newfstatat 262 79
nfsservctl 180 42               | open 2 -                        | open_by_handle_at 304 265
open_tree 428 428               | open_tree_attr 467 467          | openat 257 56
openat2 437 437                 | pause 34 -                      | perf_event_open 298 241
personality 135 92              | pidfd_getfd 438 438             | pidfd_open 434 434
pidfd_send_signal 424 424       | pipe 22 -                       | pipe2 293 59
pivot_root 155 41               | pkey_alloc 330 289              | pkey_free 331 290
pkey_mprotect 329 288           | poll 7 -                        | ppoll 271 73
prctl 157 167                   | pread64 17 67                   | preadv 295 69
preadv2 327 286                 | prlimit64 302 261               | process_madvise 440 440
process_mrelease 448 448        | process_vm_readv 310 270        | process_vm_writev 311 271
pselect6 270 72                 | ptrace 101 117                  | pwrite64 18 68
pwritev 296 70                  | pwritev2 328 287                | quotactl 179 60
quotactl_fd 443 443             | read 0 63                       | readlink 89 -
readlinkat 267 78               | readv 19 65                     | reboot 169 142
recvfrom 45 207                 | recvmmsg 299 243                | recvmsg 47 212
removexattr 197 14              | removexattrat 466 466           | rename 82 -
renameat 264 38                 | renameat2 316 276               | request_key 249 218
restart_syscall 219 128         | rmdir 84 -                      | rseq 334 293
rt_sigaction 13 134             | rt_sigpending 127 136           | rt_sigprocmask 14 135
rt_sigqueueinfo 129 138         | rt_sigreturn 15 139             | rt_sigsuspend 130 133
rt_sigtimedwait 128 137         | rt_tgsigqueueinfo 297 240       | sched_get_priority_max 146 125
sched_get_priority_min 147 126  | sched_getaffinity 204 123       | sched_getparam 143 121
sched_getscheduler 145 120      | sched_setaffinity 203 122       | sched_setattr 314 274
sched_setparam 142 118          | sched_setscheduler 144 119      | sched_yield 24 124
seccomp 317 277                 | select 23 -                     | semctl 66 191
semget 64 190                   | semop 65 193                    | semtimedop 220 192
sendmmsg 307 269                | sendmsg 46 211                  | sendto 44 206
set_mempolicy 238 237           | set_robust_list 273 99          | set_tid_address 218 96
setdomainname 171 162           | setfsgid 123 152                | setfsuid 122 151
setgid 106 144                  | setgroups 116 159               | sethostname 170 161
setitimer 38 103                | setns 308 268                   | setpgid 109 154
setpriority 141 140             | setregid 114 143                | setresgid 119 149
setresuid 117 147               | setreuid 113 145                | setrlimit 160 164
setsid 112 157                  | settimeofday 164 170            | setuid 105 146
setxattr 188 5                  | setxattrat 463 463              | shmat 30 196
shmctl 31 195                   | shmdt 67 197                    | shmget 29 194
sigaltstack 131 132             | socket 41 198                   | socketpair 53 199
stat 4 -                        | statx 332 291                   | swapoff 168 225
swapon 167 224                  | symlink 88 -                    | symlinkat 266 36
sysfs 139 -                     | sysinfo 99 179                  | syslog 103 116
tgkill 234 131                  | time 201 -                      | timer_create 222 107
timer_delete 226 111            | timer_getoverrun 225 109        | timer_gettime 224 108
timer_settime 223 110           | times 100 153                   | tkill 200 130
truncate 76 45                  | umask 95 166                    | umount2 166 39
uname 63 160                    | unlink 87 -                     | unlinkat 263 35
unshare 272 97                  | uselib 134 -                    | userfaultfd 323 282
ustat 136 -                     | utime 132 -                     | utimensat 280 88
utimes 235 -                    | vfork 58 -                      | vhangup 153 58
vmsplice 278 75                 | wait4 61 260                    | waitid 247 95
write 1 64                      | writev 20 66
"""


def _names(text: str) -> list[str]:
    return text.split()


def _parse(table: str) -> dict[str, tuple[int | None, int | None]]:
    rows = (cell.split() for line in table.strip().splitlines() for cell in line.split("|"))
    return {name: tuple(None if n == "-" else int(n) for n in numbers) for name, *numbers in rows}


NUMBERS = _parse(_TABLE)
NEWEST = max(number for numbers in NUMBERS.values() for number in numbers if number is not None)

# Denied in every stage -----------------------------------------------------------------------------

NETWORK = _names("""
    socket socketpair connect bind listen accept accept4
""")

OTHER_PROCESSES = _names("""
    ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp
    pidfd_open pidfd_getfd pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo tkill
    migrate_pages move_pages setpriority ioprio_set sched_setscheduler sched_setparam sched_setattr
    setpgid setsid
""")

# Administration, and the parts of the kernel with the most known vulnerabilities.
KERNEL = _names("""
    bpf perf_event_open userfaultfd memfd_secret vmsplice
    io_uring_setup io_uring_enter io_uring_register io_setup io_submit io_destroy
    keyctl add_key request_key kexec_load kexec_file_load init_module finit_module delete_module
    unshare setns mount umount2 pivot_root chroot open_tree open_tree_attr move_mount
    fsopen fsconfig fsmount fspick mount_setattr name_to_handle_at open_by_handle_at
    swapon swapoff reboot acct quotactl quotactl_fd settimeofday clock_settime clock_adjtime adjtimex
    sethostname setdomainname iopl ioperm modify_ldt personality vhangup syslog
    fanotify_init fanotify_mark lookup_dcookie nfsservctl uselib ustat sysfs _sysctl
""")

# Memory and queues that outlive the process and that others of the same user can reach.
SHARED_WITH_OTHERS = _names("""
    shmget shmat shmctl shmdt semget semop semtimedop semctl
    msgget msgsnd msgrcv msgctl mq_open mq_unlink
""")

# Changes to files that Landlock does not check.
UNSEEN_BY_LANDLOCK = _names("""
    chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat truncate file_setattr
    setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat
    utime utimes utimensat futimesat
""")

DENIED = frozenset(NETWORK + OTHER_PROCESSES + KERNEL + SHARED_WITH_OTHERS + UNSEEN_BY_LANDLOCK)

# Hidden in every stage: their arguments are in memory, which a filter cannot read. The C library then uses clone()
# and openat().
HIDDEN = frozenset({"clone3", "openat2"})

# Allowed in the strict stage; lockdown.py adds rules that depend on arguments -----------------------

MEMORY = _names("""
    brk mmap munmap mremap mprotect madvise mincore msync mlock mlock2 munlock membarrier
    mbind get_mempolicy set_mempolicy pkey_alloc pkey_free pkey_mprotect
""")

DESCRIPTORS = _names("""
    read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek
    fstat newfstatat statx stat lstat readlink readlinkat access faccessat faccessat2 getcwd
    getdents getdents64 close close_range dup dup2 dup3 ftruncate fsync fdatasync
    pipe pipe2 eventfd eventfd2 poll ppoll select pselect6
    epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait
""")

THREADS_AND_TIME = _names("""
    futex futex_waitv set_robust_list rseq set_tid_address sched_yield sched_getaffinity
    sched_getparam sched_getscheduler sched_get_priority_max sched_get_priority_min
    nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times
    getitimer setitimer alarm pause timer_create timer_settime timer_gettime timer_delete timer_getoverrun
    restart_syscall exit exit_group wait4 waitid
    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigpending rt_sigtimedwait sigaltstack
""")

FACTS = _names("""
    gettid getpid getppid getpgrp getpgid getsid getuid geteuid getgid getegid getresuid getresgid getgroups
    uname sysinfo getrusage getrlimit setrlimit getpriority getrandom getcpu capget umask arch_prctl
""")

ALLOWED = frozenset(MEMORY + DESCRIPTORS + THREADS_AND_TIME + FACTS)
