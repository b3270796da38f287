import { processTagVariable } from './process-tag.ts';

/** Longest tag that a warm process can be given. */
export const maxTagBytes = 256;

/**
 * Python that imports modules, waits on descriptor 3 for one line of JSON with an `Identity`, and becomes that server.
 * It runs as isolated Python (`-I`), in an environment without a value of anybody's, until it has the account.
 *
 * Only what a new process would be too is left of the former account: no capability, no descriptor but its output, no
 * way back. A module that has started threads is refused, because each of them would have to change as well.
 */
export const warmProgram = `
import ctypes, importlib, json, os, runpy, socket, sys
gate = socket.socket(fileno=3)
gate.set_inheritable(False)
try:
    for name in sys.argv[1:]:
        importlib.import_module(name)
except BaseException as error:
    gate.sendall(repr(error).encode()[:500])
    sys.exit(1)
gate.sendall(b"ready")
line = gate.makefile("rb").readline()
if not line.endswith(b"\\n"):
    sys.exit()
given = json.loads(line)
output = os.open(given["output"], os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
os.dup2(output, 1)
os.dup2(output, 2)
os.close(output)
for folder in given["cgroups"]:
    try:
        with open(folder + "/cgroup.procs", "w") as members:
            members.write(str(os.getpid()))
    except OSError:
        if given["mustJoin"]:
            raise
libc = ctypes.CDLL(None, use_errno=True)
libc.getenv.restype = ctypes.c_void_p
tag = given["tag"].encode()
assert len(tag) <= ${maxTagBytes}
place = libc.getenv(b"${processTagVariable}")
ctypes.memset(place, 0, ${maxTagBytes})
ctypes.memmove(place, tag, len(tag))
if given["entersFirst"]:
    os.chdir(given["workingDirectory"])
account = given.get("account")
if account:
    assert len(os.listdir("/proc/self/task")) == 1, "a module has started threads"
    os.setgroups(account["groupIds"])
    os.setresgid(*[account["groupId"]] * 3)
    os.setresuid(*[account["userId"]] * 3)
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capset(header, none) == 0
    try:
        os.setresuid(0, 0, 0)
    except PermissionError:
        pass
    else:
        raise AssertionError("the account did not change for good")
    assert libc.prctl(4, 1, 0, 0, 0) == 0
if not given["entersFirst"]:
    os.chdir(given["workingDirectory"])
os.environ.clear()
os.environ.update(given["environment"])
sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path]
if "PYTHONNOUSERSITE" not in os.environ:
    import site
    site.USER_BASE = site.USER_SITE = None
    site.addsitedir(site.getusersitepackages())
gate.sendall(b"begun")
gate.close()
sys.argv = given["command"]
del account, given, line, output, tag
runpy.run_path(sys.argv[0], run_name="__main__")
`;
