"""A process that changes a store as it is told, until it is killed."""

import multiprocessing

import holdall

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["holdall"])


def apply(target, change):
    """Calls the method of `target` that `change` names."""
    name, *arguments = change
    getattr(target, name)(*arguments)


def serve(path, connection):
    """Applies each list of changes as one transaction; answers when it is durable."""
    with holdall.open(path, "a") as store:
        connection.send("ready")
        while (changes := connection.recv()) is not None:
            if changes == "all":
                connection.send((dict(store), store.verify()["sound"]))
                continue
            if len(changes) == 1:
                apply(store, changes[0])
            else:
                with store.transaction() as tx:
                    for change in changes:
                        apply(tx, change)
            connection.send("done")
    connection.send("closed")


class Worker:
    """The other side of `serve`."""

    def __init__(self, path):
        self.connection, theirs = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=serve, args=(path, theirs))
        self.process.start()
        theirs.close()
        assert self.connection.recv() == "ready"

    def call(self, what):
        """Sends `what` and waits for the answer."""
        self.connection.send(what)
        return self.connection.recv()

    def kill(self):
        self.process.kill()
        self.process.join()
        self.connection.close()

    def close(self):
        assert self.call(None) == "closed"
        self.process.join()
        assert self.process.exitcode == 0
        self.connection.close()
