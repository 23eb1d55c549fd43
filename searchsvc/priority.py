"""Gives way to other work on the machine, where the system lets it."""

import os
import sys
import threading


def lower_process(by: int) -> None:
    """Lower the priority of this process and of those it starts; 1 for a little, 19 for the most."""
    if sys.platform == "win32":
        import ctypes

        below_normal, idle = 0x4000, 0x40
        kernel = ctypes.windll.kernel32
        kernel.SetPriorityClass(kernel.GetCurrentProcess(), below_normal if by < 10 else idle)
    else:
        os.nice(by)


def lower_thread(to: int) -> None:
    """Lower the priority of this thread and of those it starts; does nothing where threads have none.

    One that is lower already, as under `nice`, stays so: raising it is forbidden to most.
    """
    # Only on Linux is a thread what setpriority calls a process.
    if sys.platform == "linux":
        thread = threading.get_native_id()
        if os.getpriority(os.PRIO_PROCESS, thread) < to:
            os.setpriority(os.PRIO_PROCESS, thread, to)
