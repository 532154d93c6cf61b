"""Short forms for links and transfers, and a function that runs them."""

from simmodel.platform.network import LinkSpec


def link(name, bandwidth=100.0, latency=0.0, **options):
    return LinkSpec(name=name, bandwidth=bandwidth, latency=latency, **options)


def run(network, flows, until=None):
    """Start each flow (id, start, size, route, options) at its time; return the ends by id."""
    env = network.env
    ends = {}

    def go(flow):
        options = dict(flow)
        name = options.pop("id")
        yield env.timeout(options.pop("start"))
        ends[name] = (yield network.transfer(options.pop("size"), **options)).end

    for flow in flows:
        env.process(go(flow))
    env.run(until)
    return ends


def flow(name, size, route, start=0.0, **options):
    return {"id": name, "start": start, "size": size, "route": list(route), **options}
