# A small image with the program, without a compiler; a second one for NVIDIA GPUs:
#   docker build -t ucas .                                          CPU: the wheel of `make wheel` with torch and pyarrow
#   docker build -t ucas:cuda --build-arg DEVICE=cuda .             CUDA 13: the program of `make cuda-check` with torch 2.11
#   docker run --rm ucas demo --out /tmp/demo
#   docker run --rm -v "$PWD":/work -w /work ucas train CONFIG.toml --model DIR --data math.jsonl --out runs/x
#   docker run --rm --gpus all ucas:cuda doctor --device cuda
# `make test` in a container: docker build --target sources -t ucas:sources . && docker run --rm ucas:sources make test
ARG DEVICE=cpu

FROM debian:12 AS sources
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git make && rm -rf /var/lib/apt/lists/*
WORKDIR /ucas
COPY . .

FROM sources AS build-cpu
RUN make wheel PYTHONS=python3 TORCHES=2.13.0 PYARROWS=26.0.1

FROM sources AS build-cuda
RUN make cuda-check && mkdir out && cp build-cuda/ucas build-cuda/ucas-sandbox build-cuda/*.so out/ && strip out/*

FROM debian:12-slim AS runtime
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3 python3-venv && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/ucas
ENV PATH=/opt/ucas/bin:$PATH PIP_NO_CACHE_DIR=1

FROM runtime AS runtime-cpu
RUN pip install --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0+cpu
COPY --from=build-cpu /ucas/dist/*.whl /tmp/
RUN pip install "$(ls /tmp/ucas-*-cp311-*.whl)[train,parquet]" && rm /tmp/*.whl

FROM runtime AS runtime-cuda
RUN apt-get update && apt-get install -y --no-install-recommends libantic0 libcalcium0 libcpp-httplib0.11 libflint-arb2 libflint17 libgmp10 \
    libmpfr6 libonig5 libssl3 zlib1g && rm -rf /var/lib/apt/lists/*
RUN pip install torch==2.11.0 pyarrow==26.0.1
COPY --from=build-cuda /ucas/out/ /opt/ucas/lib/ucas/
RUN ln -s ../lib/ucas/ucas /opt/ucas/bin/ucas
ENV LD_LIBRARY_PATH=/opt/ucas/lib/python3.11/site-packages/torch/lib:/opt/ucas/lib/python3.11/site-packages/pyarrow

FROM runtime-${DEVICE}
ENTRYPOINT ["ucas"]
