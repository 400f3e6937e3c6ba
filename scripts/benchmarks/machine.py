"""A description of the machine."""
import os, pathlib, platform, re

JOURNALS = {"xfs": "with a journal", "btrfs": "copy on write, without a journal", "tmpfs": "in memory", "zfs": "copy on write"}


def file_system(directory):
    """Returns the type of the file system, and whether it has a journal."""
    device = os.stat(directory).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    kind, source = "unknown", ""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[2] == number:
            kind, source = fields[fields.index("-") + 1:][:2]
    if kind in ("ext3", "ext4"):
        # The kernel has a directory for each journal, named after the device and an inode.
        name = os.path.basename(os.path.realpath(source))
        has_journal = any(pathlib.Path("/proc/fs/jbd2").glob(f"{name}-*"))
        return f"{kind} {'with' if has_journal else 'without'} a journal"
    return f"{kind} {JOURNALS.get(kind, '(journal unknown)')}"


def describe(directory):
    model = re.search(r"model name\s*: (.+)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1))
    return (f"{os.cpu_count()} × {model.group(1) if model else platform.machine()}, {memory / (1 << 20):.0f} GiB of memory, "
            f"Linux {platform.release().split('-')[0]}, {file_system(directory)}")
