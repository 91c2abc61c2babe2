# The two commands in a container:
#   docker build -t ucas .
#   docker run --rm ucas demo --out /tmp/demo
#   docker run --rm -v "$PWD":/work -w /work ucas train CONFIG.toml --model DIR --data math.jsonl --out runs/x
# `make test` inside: docker run --rm --entrypoint make ucas test
FROM debian:12
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git make && rm -rf /var/lib/apt/lists/*
WORKDIR /ucas
COPY . .
RUN make configure && cmake --build build -j "$(nproc)" --target ucas
ENTRYPOINT ["/ucas/build/ucas"]
