"""A queue that is served in order, as plain SimPy: ``python simpy_log.py LOG PROCESSORS POLICY SCHEDULE [simmodel]``.

The processors are a ``Container``, of which each job takes its own at once. The only policy is ``fcfs``. With
``simmodel`` as last word the same processes run in ``simmodel.Environment``.
"""

import sys

import simpy


def read(log):
    """Yield number, submission (s), run time (s) and processors of each job of a log."""
    with open(log) as file:
        for line in file:
            if not line.startswith(";"):
                cells = line.split()
                yield int(cells[0]), int(cells[1]), int(cells[3]), int(cells[4])


def job(env, pool, number, run, processors, starts):
    yield pool.get(processors)
    starts.append((number, env.now))
    yield env.timeout(run)
    yield pool.put(processors)


def source(env, pool, log, starts):
    for number, submit, run, processors in read(log):
        if submit > env.now:
            yield env.timeout(submit - env.now)
        env.process(job(env, pool, number, run, processors, starts))


def environment(name):
    if name == "simpy":
        return simpy.Environment()
    from simmodel import Environment

    return Environment()


def main(log, processors, policy, schedule, name="simpy"):
    if policy != "fcfs":
        raise SystemExit(f"unknown policy {policy!r}; the only one is fcfs")
    env = environment(name)
    pool = simpy.Container(env, capacity=int(processors), init=int(processors))
    starts = []
    env.process(source(env, pool, log, starts))
    env.run()
    with open(schedule, "w") as file:
        file.write("job,start\n")
        file.writelines(f"{number},{start}\n" for number, start in starts)


if __name__ == "__main__":
    main(*sys.argv[1:])
