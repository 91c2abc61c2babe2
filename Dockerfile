# A small image with the wheel of `make wheel`, torch and pyarrow, without a compiler:
#   docker build -t ucas .                                          torch for CPUs
#   docker build -t ucas:cuda --build-arg DEVICE=cuda .             torch for CUDA 13, and the wheel's kernels for GPUs
#   docker run --rm ucas demo --out /tmp/demo
#   docker run --rm -v "$PWD":/work -w /work ucas train CONFIG.toml --model DIR --data math.jsonl --out runs/x
#   docker run --rm --gpus all ucas:cuda doctor --device cuda
# `make test` in a container: docker build --target sources -t ucas:sources . && docker run --rm ucas:sources make test
ARG DEVICE=cpu

FROM debian:12 AS sources
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git make python3-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /ucas
COPY . .

FROM sources AS build-cpu
RUN make wheel PYTHONS=python3 TORCHES=2.13.0 KERNELS=off

FROM sources AS build-cuda
RUN make wheel PYTHONS=python3 TORCHES=2.13.0

FROM debian:12-slim AS runtime
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3 python3-venv && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/ucas
ENV PATH=/opt/ucas/bin:$PATH PIP_NO_CACHE_DIR=1

FROM runtime AS runtime-cpu
RUN pip install --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0+cpu
COPY --from=build-cpu /ucas/dist/*.whl /tmp/

FROM runtime AS runtime-cuda
RUN pip install torch==2.13.0
COPY --from=build-cuda /ucas/dist/*.whl /tmp/

FROM runtime-${DEVICE}
RUN pip install "$(ls /tmp/ucas-*-cp311-*.whl)[train,parquet]" && rm /tmp/*.whl
ENTRYPOINT ["ucas"]
