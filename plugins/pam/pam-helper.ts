/**
 * Asks libpam, by Python's ctypes: no compiler, and every module that the machine has, as `login` would use it. Reads a
 * `PamQuestion` as JSON, and writes the answer as JSON. PAM is asked by a child: its parent ends that in time, with all that
 * modules started, as `pam_exec` does in sessions of their own. See pam(3), pam_conv(3), PR_SET_CHILD_SUBREAPER(2const).
 */
export const pamHelper = `
import json, os, signal, sys, time

# No program that a module starts holds the pipe open.
pipe = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

def answer(**facts):
    os.write(pipe, json.dumps(facts).encode())
    os._exit(0)

try:
    from ctypes import *
    pam, libc = CDLL("libpam.so.0"), CDLL(None)
except (ImportError, OSError) as error:
    answer(outcome="failed", reason="PAM cannot be used: %s" % error)

class Message(Structure):
    _fields_ = [("style", c_int), ("text", c_char_p)]

class Response(Structure):
    _fields_ = [("text", c_void_p), ("code", c_int)]

Talk = CFUNCTYPE(c_int, c_int, POINTER(POINTER(Message)), POINTER(POINTER(Response)), c_void_p)

class Conversation(Structure):
    _fields_ = [("talk", Talk), ("data", c_void_p)]

libc.calloc.restype = c_void_p
libc.calloc.argtypes = [c_size_t, c_size_t]
libc.strdup.restype = c_void_p
libc.strdup.argtypes = [c_char_p]
pam.pam_start.argtypes = [c_char_p, c_char_p, POINTER(Conversation), POINTER(c_void_p)]
pam.pam_authenticate.argtypes = pam.pam_acct_mgmt.argtypes = pam.pam_end.argtypes = [c_void_p, c_int]
pam.pam_strerror.restype = c_char_p
pam.pam_strerror.argtypes = [c_void_p, c_int]
pam.pam_set_item.argtypes = [c_void_p, c_int, c_void_p]
pam.pam_get_item.argtypes = [c_void_p, c_int, POINTER(c_char_p)]

asked = json.load(sys.stdin)
question, seconds = asked.get("question"), asked["timeoutSeconds"]
if question is None:
    answer(outcome="ok", name="", groups=[])
name, password = question["name"], question["password"]

def reap(wanted):
    # Whether one of them has ended, or none is left.
    try:
        while True:
            pid = os.waitpid(-1, os.WNOHANG)[0]
            if pid in (0, wanted):
                return pid != 0
    except ChildProcessError:
        return True

def end_children():
    # Those of one that ends become children of this process.
    for _ in range(100):
        if reap(None):
            return
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid, "rb") as stat:
                    parent = stat.read().rpartition(b")")[2].split()[1]
                if int(parent) == os.getpid():
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.02)

# PR_SET_CHILD_SUBREAPER
libc.prctl(36, 1, 0, 0, 0)
asking = os.fork()
if asking != 0:
    ends = time.monotonic() + seconds
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while not (is_over := reap(asking)) and time.monotonic() < ends:
        signal.sigtimedwait({signal.SIGCHLD}, max(0, ends - time.monotonic()))
    end_children()
    if not is_over:
        answer(outcome="failed", reason="PAM did not answer in %g seconds" % seconds)
    os._exit(0)

@Talk
def talk(count, messages, responses, data):
    given = cast(libc.calloc(count, sizeof(Response)), POINTER(Response))
    for index in range(count):
        # What is not shown is the password, and what is shown the name (PAM_PROMPT_ECHO_OFF, PAM_PROMPT_ECHO_ON).
        style = messages[index].contents.style
        if style in (1, 2):
            given[index].text = libc.strdup((password if style == 1 else name).encode())
    responses[0] = given
    return 0

handle, conversation = c_void_p(), Conversation(talk, None)
code = pam.pam_start(question["service"].encode(), name.encode(), byref(conversation), byref(handle))
if code != 0:
    answer(outcome="failed", reason="PAM could not begin: %d" % code)

def why(code):
    return pam.pam_strerror(handle, code).decode(errors="replace")

# PAM_DISALLOW_NULL_AUTHTOK. Of its errors: open, symbol, service, system, buffer, credentials, no authority, abort, module.
broken = {1, 2, 3, 4, 5, 8, 9, 26, 28}

# In place of the wait that makes guessing slow (PAM_FAIL_DELAY): the hub does that, without a process.
@CFUNCTYPE(None, c_int, c_uint, c_void_p)
def refuse(code, microseconds, data):
    if code != 0 and code not in broken:
        answer(outcome="refused", step="authenticate", reason=why(code), waitSeconds=microseconds / 1e6)

pam.pam_set_item(handle, 10, cast(refuse, c_void_p))
code = pam.pam_authenticate(handle, 1)
if code in broken:
    answer(outcome="failed", reason="PAM could not check a login: " + why(code))
if code != 0:
    answer(outcome="refused", step="authenticate", reason=why(code))
if question["checkAccount"]:
    code = pam.pam_acct_mgmt(handle, 1)
    if code != 0:
        answer(outcome="refused", step="account", reason=why(code))
final = c_char_p()
pam.pam_get_item(handle, 2, byref(final))
name = final.value.decode()
groups = []
if question["wantsGroups"]:
    import grp, pwd
    for gid in os.getgrouplist(name, pwd.getpwnam(name).pw_gid):
        try:
            groups.append(grp.getgrgid(gid).gr_name)
        except KeyError:
            pass
pam.pam_end(handle, 0)
answer(outcome="ok", name=name, groups=groups)
`;
