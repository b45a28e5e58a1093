# Part of Bastile, under the MIT License. See LICENSE.
"""Runs pytest in a copy of a process that has imported PyTorch and Transformers: most
files of tests take less time than these imports. Each file has a process of its own
still, so that nothing that one of them patches is seen by another.

`start` starts that process, the server; `forked_pytest.py SOCKET ARGUMENTS` is
`pytest ARGUMENTS` in a copy of it. The server imports when it is first asked. It ends
when its standard input does, whose other end is its parent's: however that ends, no
server stays."""

import atexit
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

IMPORTS = ["pytest", "torch", "transformers.modeling_utils"]


def start(python, environment):
    """Starts a server of the interpreter `python`, whose imports see `environment`.
    Returns the path of its socket, in a folder that is this user's alone and goes with
    the server."""
    folder = tempfile.mkdtemp(prefix="bastile-tests-")
    path = os.path.join(folder, "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        file = listener.fileno()
        command = [python, os.path.abspath(__file__), "--serve", str(file)]
        server = subprocess.Popen(
            command, stdin=subprocess.PIPE, pass_fds=[file], env=environment
        )

    atexit.register(server.stdin.close)
    return path


def ask(path, arguments):
    """Has the server run pytest with the files, folder and environment of this process.
    Returns pytest's exit status."""
    request = {
        "arguments": arguments,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(path)
        socket.send_fds(server, [json.dumps(request).encode()], [0, 1, 2])
        code = server.recv(16)
        if not code:
            print("forked_pytest: the server has ended, see its message")
        return int(code or 1)


def serve(listener):
    """Answers each client in a copy of this process, which does not return from
    `answer`."""
    # Nobody waits for the copies, which answer by themselves. What ends a group of
    # processes ends lit and the clients as well, and with them this process and tests.
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        client, _ = listener.accept()
        for name in IMPORTS:
            __import__(name)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            answer(client)
        client.close()
    shutil.rmtree(os.path.dirname(listener.getsockname()))


def answer(client):
    """Runs what the client asks for in a copy of its own, and kills that, with the
    processes that it has started, if the client ends first."""
    text, files, _, _ = socket.recv_fds(client, 1 << 20, 3)
    test = os.fork()
    if test == 0:
        os.setpgid(0, 0)
        client.close()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.exit(run(json.loads(text), files))
    with contextlib.suppress(ProcessLookupError, PermissionError):
        # The copy may not have come to this yet, or may be done with everything.
        os.setpgid(test, test)
    end = os.pidfd_open(test)
    if end in select.select([client, end], [], [])[0]:
        code = os.waitstatus_to_exitcode(os.waitpid(test, 0)[1])
        # A signal's number is negative; a shell's status for it is more than 128.
        with contextlib.suppress(OSError):
            client.send(str(code if code >= 0 else 128 - code).encode())
    else:
        os.killpg(test, signal.SIGKILL)
    # What this copy has imported takes a while to take down.
    os._exit(0)


def run(request, files):
    """What `python -m pytest` does, behind the interpreter's own start."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = [request["folder"], *filter(None, folders)]
    sys.argv = ["pytest", *request["arguments"]]
    return sys.modules["pytest"].main()


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(socket.socket(fileno=int(sys.argv[2])))
    else:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
