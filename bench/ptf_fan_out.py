"""The comparison program of `round_trip.py`: one fan-out of pytensor-federated over loopback, without TLS, noise or records.

Needs a Python with pytensor-federated. `serve PORT` runs one node; `ask CALLS PORT…` calls all of them concurrently, CALLS times, and
prints the time of each fan-out in microseconds as a JSON list.
"""
import asyncio
import json
import sys
import time

PARAMETERS = 4
WARM = 200


async def serve(port):
    import grpclib.server
    import numpy
    from pytensor_federated import ArraysToArraysService

    def log_density(theta):
        return [numpy.float64(-0.5 * (theta @ theta))]

    server = grpclib.server.Server([ArraysToArraysService(log_density)])
    await server.start("127.0.0.1", port)
    print("ready", flush=True)
    await server.wait_closed()


async def ask(calls, ports):
    import numpy
    from pytensor_federated import ArraysToArraysServiceClient

    nodes = [ArraysToArraysServiceClient("127.0.0.1", port) for port in ports]
    theta = numpy.linspace(-1.0, 1.0, PARAMETERS)
    took = []
    for call in range(WARM + calls):
        began = time.perf_counter()
        await asyncio.gather(*(node.evaluate_async(theta, use_stream=True) for node in nodes))
        if call >= WARM:
            took.append(1e6 * (time.perf_counter() - began))
    print(json.dumps(took), flush=True)


if __name__ == "__main__":
    what, *numbers = sys.argv[1:]
    numbers = [int(number) for number in numbers]
    if what == "serve":
        asyncio.run(serve(numbers[0]))
    else:
        asyncio.run(ask(numbers[0], numbers[1:]))
